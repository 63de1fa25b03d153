import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
let admin: Admin
beforeAll(async () => {
  network = await startNetwork({ identities: 2, policies: 2, sessions: 2 })
  admin = await network.admin()
})
afterAll(() => network[Symbol.asyncDispose]())

const reads = ['/identities', '/services', '/edge-routers', '/current-identity', '/service-policies']

test.each(['identity-1', 'identity-2', 'policy-1', 'sessions-1'])(
  'while %s is stopped with its connections open, reads are answered by the other replica',
  async (name) => {
    const pid = network.processes.get(name)?.pid() ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      const answers = await Promise.all([...reads, ...reads].map((path) => admin.call('GET', path)))
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  },
)
