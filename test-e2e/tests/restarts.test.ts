import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { probeHealth, readinessOf } from '@overlay/launcher/testing'
import { expect, test } from 'vitest'
import { openClient } from '../client.js'
import { type Network, startNetwork } from '../network.js'

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
    const { status, checks } = await probe(network, 'policy')
    return { status, memory: checks.memory }
  }
  const [policy, identity] = [pidOf(network, 'policy'), pidOf(network, 'identity')]
  process.kill(identity, 'SIGSTOP') // it has the rows
  try {
    process.kill(policy, 'SIGKILL')
    await expect.poll(() => pidOf(network, 'policy')).not.toBe(policy)
    await expect.poll(readiness).toEqual({ status: 503, memory: expect.stringContaining('not loaded') })
  } finally {
    process.kill(identity, 'SIGCONT')
  }
  await expect.poll(readiness).toEqual({ status: 200, memory: 'ok' })
})

const components = ['identity', 'pki', 'policy', 'sessions'] as const

test('a gateway stays ready while a component is unresponsive, its health names the component, and it serves what needs others', async () => {
  await using network = await startNetwork()
  const admin = await network.admin()
  using anyone = openClient({ addresses: [network.address], caPem: network.caPem }, '')
  const health = async () => {
    const { status, body } = await anyone.call('GET', '/health-checks')
    return [status, body.data]
  }
  const withState = (component: string, healthy: boolean) => {
    const checks = [...components, 'serving'].map((id) => ({ healthy: id !== component || healthy, id }))
    return [healthy ? 200 : 503, { checks, healthy }]
  }
  for (const component of ['pki', 'sessions'] as const) {
    await expect.poll(health).toEqual(withState(component, true))
    const pid = pidOf(network, component)
    process.kill(pid, 'SIGSTOP')
    try {
      await expect.poll(health).toEqual(withState(component, false))
      const ok = Object.fromEntries([...components, 'serving'].map((id) => [id, 'ok']))
      expect(await probe(network, 'gateway')).toEqual({
        status: 200,
        checks: { ...ok, [component]: 'unavailable' },
      })
      expect((await admin.call('GET', '/services')).status).toBe(200)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  }
  await expect.poll(health).toEqual(withState('sessions', true))
})

const oneOfEachOwner = ['/identities', '/enrollments', '/services', '/edge-routers']

/** While a component is unavailable, the gateway responds with 503 or not at all. */
function meanwhile(answer: { status: number } | undefined): number | undefined {
  expect([undefined, 200, 503]).toContain(answer?.status)
  return answer?.status
}

/** The answer of a process to probes. Without a status, it does not answer. */
async function probe(
  network: Network,
  name: string,
): Promise<{ readonly status: number | undefined; readonly checks: Readonly<Record<string, string>> }> {
  const text = await readFile(join(network.home, 'status.json'), 'utf8')
  const { processes } = JSON.parse(text) as { processes: { name: string; ops: string }[] }
  const { ops = '' } = processes.find((process) => process.name === name) ?? {}
  const [status, { checks }] = await Promise.all([probeHealth(ops, 'ready', 2000), readinessOf(ops)])
  return { status, checks }
}

function pidOf(network: Network, name: string): number {
  const pid = network.processes.get(name)?.pid()
  if (pid === undefined) throw new Error(`${name} does not run`)
  return pid
}
