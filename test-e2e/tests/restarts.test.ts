import { expect, test } from 'vitest'
import { startNetwork } from '../network.js'

test('a killed process is restarted, and acknowledged writes are kept', async () => {
  await using network = await startNetwork()
  const admin = await network.admin()
  const ids: string[] = []
  for (const [name, supervised] of network.processes) {
    ids.push(await admin.create('services', { name: `before ${name}`, encryptionRequired: true }))
    const killed = supervised.pid()
    process.kill(killed, 'SIGKILL')
    await expect.poll(() => network.processes.get(name)?.pid()).not.toBe(killed)
    for (const path of [...oneOfEachOwner, ...ids.map((id) => `/services/${id}`)]) {
      const read = async () => meanwhile(await admin.call('GET', path).catch(() => undefined))
      await expect.poll(read).toBe(200)
    }
  }
})

const oneOfEachOwner = ['/identities', '/enrollments', '/services', '/edge-routers']

/** While a part is away the answer is 503, or there is no answer from the gateway. */
function meanwhile(answer: { status: number } | undefined): number | undefined {
  expect([undefined, 200, 503]).toContain(answer?.status)
  return answer?.status
}
