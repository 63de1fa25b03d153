import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { streamEvents } from '../event-stream.js'
import { exchange, startTraffic } from '../traffic.js'

interface Line {
  readonly level: string
  readonly msg: string
  readonly step?: string
  readonly time: string
  readonly [fact: string]: unknown
}

/** The lines of all processes and of the launcher. */
async function linesIn(home: string): Promise<readonly Line[]> {
  const names = (await readdir(home)).filter((name) => name.endsWith('.log'))
  const texts = await Promise.all(names.map((name) => readFile(join(home, name), 'utf8')))
  return texts.flatMap((text) =>
    text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Line),
  )
}

test('start, use and stop with open streams, routers and circuits leave no warning in any log', async () => {
  await using traffic = await startTraffic({ gateways: 2, sessions: 2 })
  const { network, admin } = traffic
  const { token } = await admin.request<{ token: string }>('GET', '/current-api-session')
  const { address, caPem } = network
  using _stream = await streamEvents({ address, caPem, token }, ['fabric.circuits'])
  const router = await traffic.router('router')
  const hosted = await traffic.hosted('echo', router)
  const { connection } = await traffic.dialed(hosted.serviceId, router)
  await exchange(connection, Buffer.from('used'))
  await network.stop()

  const lines = await linesIn(network.home)
  const unclean = lines.filter(({ level }) => !['debug', 'info'].includes(level))
  expect(unclean.map(({ level, msg, err, event }) => ({ level, msg, err, event }))).toEqual([])
  const launcher = lines.filter(({ service }) => service === 'launcher')
  for (const step of ['sessions-2 is ready', 'gateway-1 is ready'])
    expect(launcher).toContainEqual(expect.objectContaining({ msg: 'step', step, level: 'info' }))
  expect(launcher.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['ready', 'stopping', 'stopped']))
  for (const { time } of launcher) expect(time).toBe(new Date(time).toISOString())
})
