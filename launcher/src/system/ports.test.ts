import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { collide, freePort, listenError, listenProblem } from './ports.js'
import { requireFree } from './require-free.js'

const settings = ['OVERLAY_ADDRESS', 'OVERLAY_LISTEN'] as const

test('a port that is in use', async () => {
  const port = await freePort()
  const server = createServer()
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const failure = await listenError({ host: '127.0.0.1', port })
  expect(failure && listenProblem(failure, `127.0.0.1:${port}`, settings)).toBe(
    `cannot listen at 127.0.0.1:${port}: another program listens there; stop it, or set OVERLAY_ADDRESS to another port`,
  )
})

test('an address of another machine', async () => {
  const failure = await listenError({ host: '192.0.2.1', port: 1280 })
  expect(failure && listenProblem(failure, '192.0.2.1:1280', settings)).toBe(
    'cannot listen at 192.0.2.1:1280: this machine does not have the address; set OVERLAY_LISTEN to one that it has, such as 0.0.0.0:PORT',
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

test.each([
  ['EACCES', 'set OVERLAY_ADDRESS to a port from 1024'],
  ['ENOTFOUND', 'the host is unknown; set OVERLAY_LISTEN'],
  ['EOTHER', 'what; set OVERLAY_ADDRESS or OVERLAY_LISTEN'],
])('%s names what to do', (code, text) => {
  expect(listenProblem(Object.assign(new Error('what'), { code }), 'a:443', settings)).toContain(text)
})

test('two addresses of the product with one port are refused, with their settings', async () => {
  const text = `127.0.0.1:${await freePort()}`
  const metrics = { text, settings: ['OVERLAY_METRICS_ADDRESS'] as const }
  await requireFree([{ text: `127.0.0.1:${await freePort()}`, settings }, metrics])
  await expect(requireFree([{ text, settings }, metrics])).rejects.toThrow(
    'OVERLAY_ADDRESS and OVERLAY_METRICS_ADDRESS have the same port',
  )
})
