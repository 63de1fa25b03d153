import { once } from 'node:events'
import { connect } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADMIN } from '../../testing/fakes.js'
import { startGateway, type TestGateway } from '../../testing/gateway.js'
import { jsonBytes } from './body.js'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ bodyMs: 300, requestMs: 1000 })
})
afterAll(() => gateway[Symbol.asyncDispose]())

const path = '/edge/management/v1/services'
const post = (text: string, headers = {}) =>
  gateway.request(path, { method: 'POST', token: ADMIN, text, headers })

test('a body over the limit is refused by its announced length, and the connection ends', async () => {
  const { status, json, headers } = await post(`{"name":"${'x'.repeat(1 << 20)}"}`)
  expect([status, json.error?.code, headers.connection]).toEqual([400, 'COULD_NOT_READ_BODY', 'close'])
})

test('a body over the limit is refused without an announced length too', async () => {
  const { status, json } = await post(`{"name":"${'x'.repeat(1 << 20)}"}`, { 'transfer-encoding': 'chunked' })
  expect([status, json.error?.code]).toEqual([400, 'COULD_NOT_READ_BODY'])
})

test('a body is limited more tightly where no session is needed', async () => {
  const logIn = (username: string) =>
    gateway.request('/edge/client/v1/authenticate?method=password', {
      method: 'POST',
      text: JSON.stringify({ username, password: 'secret' }),
    })
  const before = gateway.fakes.called('identity.authenticate')
  const { status, json } = await logIn('x'.repeat(80 << 10))
  expect([status, json.error?.code]).toEqual([400, 'COULD_NOT_READ_BODY'])
  expect((await logIn('x'.repeat(60 << 10))).json.error?.code).toBe('COULD_NOT_VALIDATE')
  expect(gateway.fakes.called('identity.authenticate')).toBe(before)
})

test('a login names no more config types than its limit', async () => {
  const { status, json } = await gateway.request('/edge/client/v1/authenticate?method=password', {
    method: 'POST',
    body: { configTypes: Array(501).fill('t') },
  })
  expect([status, json.error?.cause?.field]).toEqual([400, 'configTypes'])
})

test('nothing of a refused body reaches a service', () => {
  expect(gateway.fakes.called('policy.entities.create')).toBe(0)
})

test('deep nesting is refused before it is parsed', async () => {
  const { status, json } = await post(`{"tags":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  expect([status, json.error?.code]).toEqual([400, 'COULD_NOT_PARSE_BODY'])
})

test('brackets in texts are no nesting', async () => {
  const { status } = await post(JSON.stringify({ name: `\\"${'['.repeat(300)}`, encryptionRequired: true }))
  expect(status).toBe(201)
})

test('a NUL character is refused, its escaped look is not', async () => {
  expect((await post('{"name":"a\\u0000b","encryptionRequired":true}')).status).toBe(400)
  expect((await post('{"name":"a\\\\u0000b","encryptionRequired":true}')).status).toBe(201)
})

test('half of a surrogate pair becomes the replacement character', () => {
  expect(jsonBytes({ a: '\ud800x', b: '\\ud800', c: '😀' }).toString()).toBe(
    '{"a":"\ufffdx","b":"\\\\ud800","c":"😀"}',
  )
})

test('a client that sends all of a refused body before it reads gets the answer', async () => {
  await using patient = await startGateway({ bodyMs: 30_000, requestMs: 30_000 }) // on a busy machine, sending takes long
  const body = 'x'.repeat(3 << 20)
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nzt-session: ${ADMIN}\r\ncontent-type: application/json\r\n`
  const socket = connect({ host: '127.0.0.1', port: patient.port, rejectUnauthorized: false })
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk.toString()
  })
  socket.pause()
  const failed = new Promise<never>((_, reject) => {
    socket.on('error', reject)
  })
  const send = (text: string) =>
    Promise.race([failed, new Promise<void>((sent) => socket.write(text, () => sent()))])
  await send(`${head}content-length: ${body.length}\r\n\r\n`)
  for (let from = 0; from < body.length; from += 1 << 16) await send(body.slice(from, from + (1 << 16)))
  socket.resume()
  await once(socket, 'close')
  expect(received).toContain('"code":"COULD_NOT_READ_BODY"')
})

/** Everything that the gateway says on a connection on which we write by hand. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false }, () =>
      socket.write(text),
    )
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk.toString()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
  })
}

test('a body that does not come is cut, with an answer', async () => {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nzt-session: ${ADMIN}\r\ncontent-type: application/json\r\n`
  const received = await raw(`${head}content-length: 10\r\n\r\n{"na`)
  expect(received).toMatch(/^HTTP\/1.1 400 /)
  expect(received).toContain('"code":"COULD_NOT_READ_BODY"')
  expect(received.toLowerCase()).toContain('connection: close')
})

test('headers over the limit are refused in the envelope', async () => {
  const received = await raw(`GET /version HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)
  expect(received).toMatch(/^HTTP\/1.1 431 /)
  expect(received).toContain('"code":"HEADERS_TOO_LARGE"')
})

test('a request that is not HTTP is refused in the envelope', async () => {
  expect(await raw('hello\r\n\r\n')).toMatch(/^HTTP\/1.1 400 .*"error"/s)
})

test('a target or host that is no address is refused in the envelope', async () => {
  const received = await raw('GET /version HTTP/1.1\r\nhost: bad host\r\nconnection: close\r\n\r\n')
  expect(received).toMatch(/^HTTP\/1.1 400 .*"error"/s)
})

test('a service that does not answer is a 503 in time, and its call is signalOfCall up', async () => {
  let signalOfCall: AbortSignal | undefined
  gateway.fakes.instead.set('policy.entities.get', (_request, { signal }) => {
    signalOfCall = signal
    return new Promise(() => undefined)
  })
  const { status, json } = await gateway.request(`${path}/x`, { token: ADMIN })
  expect([status, json.error?.code, signalOfCall?.aborted]).toEqual([503, 'TIMEOUT', true])
})

test('a client that goes away takes its call along', async () => {
  const signalOfCall = new Promise<AbortSignal>((resolve) => {
    gateway.fakes.instead.set('policy.entities.get', (_request, { signal }) => {
      resolve(signal)
      return new Promise(() => undefined)
    })
  })
  const socket = connect({ host: '127.0.0.1', port: gateway.port, rejectUnauthorized: false }, () =>
    socket.write(`GET ${path}/x HTTP/1.1\r\nhost: localhost\r\nzt-session: ${ADMIN}\r\n\r\n`),
  )
  const signal = await signalOfCall
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
  socket.destroy()
  await aborted
  gateway.fakes.instead.delete('policy.entities.get')
})
