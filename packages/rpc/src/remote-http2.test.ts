import { startOlderServers } from './test-service.js'

startOlderServers()
await import('./remote.test.js')
