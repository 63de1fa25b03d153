import { expect, test } from 'vitest'
import { startNetwork } from '../network.js'

test('a process that is killed is back within five seconds, and what was acknowledged is there', async () => {
  await using network = await startNetwork()
  const admin = await network.admin()
  const ids: string[] = []
  for (const [name, process_] of network.processes) {
    ids.push(await admin.create('services', { name: `before ${name}`, encryptionRequired: true }))
    process.kill(process_.pid(), 'SIGKILL')
    const answers = async () => {
      const answer = await admin.call('GET', '/services').catch(() => undefined)
      expect([undefined, 200, 503]).toContain(answer?.status)
      return answer?.status
    }
    await expect.poll(answers, { timeout: 5000 }).toBe(200)
    for (const id of ids) expect((await admin.call('GET', `/services/${id}`)).status).toBe(200)
  }
})
