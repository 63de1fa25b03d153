import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { exchange, startTraffic, type Traffic, until } from '../traffic.js'

const MEGABYTE = 1024 * 1024

async function kill(traffic: Traffic, controllerId: string): Promise<void> {
  const pid = traffic.network.processes.get(controllerId)?.pid()
  if (pid === undefined) throw new Error(`there is no process ${controllerId}`)
  process.kill(pid, 'SIGKILL')
}

test('circuits live on without the replica that set them up, and another one takes them over', async () => {
  await using traffic = await startTraffic({ sessions: 2 })
  const options = { hasLinks: true, closeWaitMs: 1000 }
  const near = await traffic.router('near', options)
  const far = await traffic.router('far', options)
  const third = await traffic.router('third', options)
  await until(() => third.links?.all().length === 2 && near.links?.all().length === 2)
  const { serviceId } = await traffic.hosted('service', far)
  const { connection, session, sdk } = await traffic.dialed(serviceId, near)
  const sent = randomBytes(MEGABYTE)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)

  const owner = near.circuits()[0]?.controllerId ?? ''
  await kill(traffic, owner)
  await until(() => near.controllers.get(owner) === undefined)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
  const second = await sdk.dial(session.token)
  expect((await exchange(second, sent)).equals(sent)).toBe(true)

  // the owner is back; the circuits of its predecessor survive its questions
  await until(() => near.controllers.get(owner) && far.controllers.get(owner))
  near.confirmCircuits()
  far.confirmCircuits()
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)

  near.links?.cut(far.id)
  expect((await exchange(connection, sent)).equals(sent)).toBe(true)
  expect(near.circuits()).toHaveLength(2)
  expect(await traffic.routePath(session)).toEqual([near.id, third.id, far.id])
})
