import { once } from 'node:events'
import { connect } from 'node:net'
import pino from 'pino'
import { Gauge, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { type Health, serveOps } from './ops.js'

const log = pino({ enabled: false })

const get = async (port: number, path: string, init?: RequestInit) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, init)
  return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.text() }
}

test('a live process says so, whatever its health', async () => {
  const health = () => Promise.reject(new Error('broken'))
  await using ops = await serveOps('127.0.0.1:0', { log, health })
  expect(await get(ops.port, '/healthz/live')).toMatchObject({ status: 200 })
  expect(await get(ops.port, '/healthz/ready')).toMatchObject({ status: 503 })
})

test('readiness is asked for each time, and tells what is wrong', async () => {
  let now: Health = { ready: true, checks: { database: 'ok' } }
  await using ops = await serveOps('127.0.0.1:0', { log, health: () => now })
  expect(await get(ops.port, '/healthz/ready')).toMatchObject({ status: 200, body: JSON.stringify(now) })
  now = { ready: false, checks: { database: 'connection refused' } }
  expect(await get(ops.port, '/healthz/ready')).toMatchObject({ status: 503, body: JSON.stringify(now) })
})

test('metrics are served in the text format', async () => {
  const metrics = new Registry()
  new Gauge({ name: 'overlay_test', help: 'test', registers: [metrics] }).set(7)
  await using ops = await serveOps('127.0.0.1:0', {
    log,
    health: () => ({ ready: true, checks: {} }),
    metrics,
  })
  const { status, type, body } = await get(ops.port, '/metrics')
  expect([status, type]).toEqual([200, metrics.contentType])
  expect(body).toContain('overlay_test 7')
})

test('there is nothing else', async () => {
  await using ops = await serveOps('127.0.0.1:0', { log, health: () => ({ ready: true, checks: {} }) })
  expect(await get(ops.port, '/')).toMatchObject({ status: 404 })
  expect(await get(ops.port, '/metrics', { method: 'POST' })).toMatchObject({ status: 404 })
})

test('an address that is taken stops the start', async () => {
  await using ops = await serveOps('127.0.0.1:0', { log, health: () => ({ ready: true, checks: {} }) })
  const second = serveOps(`127.0.0.1:${ops.port}`, { log, health: () => ({ ready: true, checks: {} }) })
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' })
})

test('probes are answered while strangers hold as many connections as are allowed', async () => {
  await using ops = await serveOps('127.0.0.1:0', { log, health: () => ({ ready: true, checks: {} }) })
  const held = Array.from({ length: 200 }, () => connect(ops.port, '127.0.0.1'))
  for (const socket of held) socket.on('error', () => undefined)
  await Promise.all(held.map((socket) => once(socket, 'connect')))
  const [oldest] = held
  const closed = oldest && once(oldest, 'close')
  expect(await get(ops.port, '/healthz/live')).toMatchObject({ status: 200 })
  await closed
  for (const socket of held) socket.destroy()
})
