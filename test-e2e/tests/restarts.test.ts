import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

test('a new process of policy is ready when it has loaded', async () => {
  await using network = await startNetwork()
  const readiness = async (): Promise<object> => {
    const status = await readFile(join(network.home, 'status.json'), 'utf8')
    const { processes } = JSON.parse(status) as { processes: { name: string; ops: string }[] }
    const ops = processes.find(({ name }) => name === 'policy')?.ops
    const answer = await fetch(`http://${ops}/healthz/ready`).catch(() => undefined)
    const { checks } = ((await answer?.json()) ?? {}) as { checks?: { memory?: string } }
    return { status: answer?.status, memory: checks?.memory }
  }
  const pidOf = (name: string): number => {
    const pid = network.processes.get(name)?.pid()
    if (pid === undefined) throw new Error(`${name} does not run`)
    return pid
  }
  const [policy, identity] = [pidOf('policy'), pidOf('identity')]
  process.kill(identity, 'SIGSTOP') // it has the rows
  try {
    process.kill(policy, 'SIGKILL')
    await expect.poll(() => pidOf('policy')).not.toBe(policy)
    await expect.poll(readiness).toEqual({ status: 503, memory: expect.stringContaining('not loaded') })
  } finally {
    process.kill(identity, 'SIGCONT')
  }
  await expect.poll(readiness).toEqual({ status: 200, memory: 'ok' })
})

const oneOfEachOwner = ['/identities', '/enrollments', '/services', '/edge-routers']

/** While a part is away the answer is 503, or there is no answer from the gateway. */
function meanwhile(answer: { status: number } | undefined): number | undefined {
  expect([undefined, 200, 503]).toContain(answer?.status)
  return answer?.status
}
