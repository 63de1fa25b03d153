import { startOlderServers } from './test-service.js'

startOlderServers()
await import('./mesh.test.js')
