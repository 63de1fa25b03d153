import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { collide, freePort } from './ports.js'
import { requireFree } from './require-free.js'

const settings = ['OVERLAY_ADDRESS', 'OVERLAY_LISTEN'] as const

test('a port that is in use', async () => {
  const port = await freePort()
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const text = `127.0.0.1:${port}`
  await expect(requireFree([{ text, settings }])).rejects.toThrow(
    `cannot listen at ${text}: listen EADDRINUSE: address already in use ${text}; set OVERLAY_ADDRESS or OVERLAY_LISTEN`,
  )
})

test('an address of another machine', async () => {
  await expect(requireFree([{ text: '192.0.2.1:1280', settings }])).rejects.toThrow(
    /^cannot listen at 192.0.2.1:1280: listen EADDRNOTAVAIL/,
  )
})

test.each([
  ['127.0.0.1', 1280, '127.0.0.1', 1280, true],
  ['::', 1280, '127.0.0.1', 1280, true],
  ['127.0.0.1', 1280, 'localhost', 1280, true],
  ['127.0.0.1', 1280, '127.0.0.1', 6262, false],
  ['10.0.0.1', 443, '10.0.0.2', 443, false],
])('%s:%s and %s:%s collide: %s', (a, port, b, otherPort, expected) => {
  expect(collide({ host: a, port }, { host: b, port: otherPort })).toBe(expected)
})

test('two addresses of the product with one port are refused, with their settings', async () => {
  const text = `127.0.0.1:${await freePort()}`
  const metrics = { text, settings: ['OVERLAY_METRICS_ADDRESS'] }
  await requireFree([{ text: `127.0.0.1:${await freePort()}`, settings }, metrics])
  await expect(requireFree([{ text, settings }, metrics])).rejects.toThrow(
    'OVERLAY_ADDRESS and OVERLAY_METRICS_ADDRESS have the same port',
  )
})
