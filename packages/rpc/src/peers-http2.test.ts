import { startOlderServers } from './test-service.js'

startOlderServers()
await import('./peers.test.js')
