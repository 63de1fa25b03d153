import { serveOps } from '@overlay/process'
import { expect, test } from 'vitest'
import { freePort } from '../system/ports.js'
import { serveMetrics } from './serve-metrics.js'

const print = (): void => undefined

async function startProcess(ready: boolean) {
  const health = () => ({ ready, checks: { database: ready ? 'ok' : 'does not answer', bus: 'away' } })
  const server = await serveOps('127.0.0.1:0', { log: { error: print }, health })
  return Object.assign(server, { address: `127.0.0.1:${server.port}` })
}

const get = async (address: string, path: string) => {
  const answer = await fetch(`http://${address}${path}`)
  return { status: answer.status, body: await answer.text() }
}

test('one address has the metrics of all processes, also if one of them does not answer', async () => {
  await using gateway = await startProcess(true)
  const processes = [
    { name: 'gateway', ops: gateway.address, restarts: 0 },
    { name: 'policy', ops: `127.0.0.1:${await freePort()}`, restarts: 2 },
  ]
  const address = `127.0.0.1:${await freePort()}`
  await using _server = await serveMetrics({ address, processes: () => processes, print })
  const { status, body } = await get(address, '/metrics')
  expect(status).toBe(200)
  expect(body).toContain('overlay_streams{process="gateway"} 0\n')
  expect(body).toContain('overlay_process_up{process="gateway"} 1\noverlay_process_up{process="policy"} 0\n')
  expect(body).toContain('overlay_process_restarts_total{process="policy"} 2\n')
  expect(body).toMatch(/^process_start_time_seconds\{process="launcher"\} \d/m)
})

test('the product is ready when each process is', async () => {
  await using gateway = await startProcess(true)
  await using policy = await startProcess(false)
  const processes = [{ name: 'gateway', ops: gateway.address, restarts: 0 }]
  const address = `127.0.0.1:${await freePort()}`
  await using _server = await serveMetrics({ address, processes: () => processes, print })
  expect(await get(address, '/healthz/ready')).toMatchObject({ status: 200 })
  processes.push({ name: 'policy', ops: policy.address, restarts: 0 })
  const { status, body } = await get(address, '/healthz/ready')
  expect(status).toBe(503)
  expect(JSON.parse(body)).toEqual({
    ready: false,
    checks: { gateway: 'ok', policy: 'database does not answer, bus away' },
  })
})

test('a second product uses another address than the default', async () => {
  const options = { address: undefined, processes: () => [], print }
  await using first = await serveMetrics(options)
  await using second = await serveMetrics(options)
  expect(second.address).not.toBe(first.address)
  for (const { address } of [first, second])
    expect(await get(address, '/healthz/live')).toMatchObject({ status: 200 })
})
