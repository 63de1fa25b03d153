import { once } from 'node:events'
import { connect } from 'node:net'
import { credentials, Metadata, status } from '@grpc/grpc-js'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import {
  HealthCheckRequest,
  HealthClient,
  HealthCheckResponse_ServingStatus as Status,
} from './gen/health/v1/health.js'
import { openHealth } from './health.js'
import { serveHealth } from './serve-health.js'

const log = pino({ enabled: false })

/** A process whose readiness the test sets, served in plain text, and a client of it. */
async function start() {
  let answer: () => Promise<boolean> = async () => true
  let reads = 0
  const health = openHealth({
    name: 'policy',
    isReady() {
      reads++
      return answer()
    },
  })
  const server = await serveHealth({ host: '127.0.0.1', port: 0 }, health, log)
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= Promise.resolve(server[Symbol.asyncDispose]())
    return stopped
  }
  onTestFinished(stop)
  const client = new HealthClient(`127.0.0.1:${server.port}`, credentials.createInsecure())
  onTestFinished(() => client.close())
  return {
    port: server.port,
    stop,
    health,
    client,
    reads: () => reads,
    becomes(isReady: () => Promise<boolean>) {
      answer = isReady
    },
    check: (service = '') =>
      new Promise<Status>((resolve, reject) =>
        client.check(HealthCheckRequest.create({ service }), (err, response) =>
          err ? reject(err) : resolve(response.status),
        ),
      ),
    watch: (service = '') =>
      client.watch(HealthCheckRequest.create({ service }), new Metadata()).on('error', () => undefined),
  }
}

test('a check has the readiness of the process, under each of its names', async () => {
  const { check, becomes } = await start()
  expect([await check(), await check('policy')]).toEqual([Status.SERVING, Status.SERVING])
  becomes(async () => false)
  expect([await check(), await check('policy')]).toEqual([Status.NOT_SERVING, Status.NOT_SERVING])
  becomes(() => Promise.reject(new Error('broken')))
  expect(await check()).toBe(Status.NOT_SERVING)
  await expect(check('unknown')).rejects.toMatchObject({ code: status.NOT_FOUND })
})

test('checks at the same time read the readiness once', async () => {
  const { check, becomes, reads } = await start()
  let ready = (_: boolean): void => undefined
  becomes(() => new Promise((resolve) => (ready = resolve)))
  const [first, second] = [check(), check('policy')]
  await expect.poll(reads).toBe(1)
  const other = check('unknown') // answered after the others have arrived
  await expect(other).rejects.toMatchObject({ code: status.NOT_FOUND })
  ready(true)
  expect(await Promise.all([first, second])).toEqual([Status.SERVING, Status.SERVING])
  expect(reads()).toBe(1)
})

test('a process that stops does not serve from then on, whatever its readiness', async () => {
  const { check, health } = await start()
  health.stop()
  expect(await check()).toBe(Status.NOT_SERVING)
})

test('Watch is refused as unimplemented, and clients check instead', async () => {
  const { watch } = await start()
  const refused = new Promise((resolve) => watch().on('error', resolve).resume())
  expect(await refused).toMatchObject({ code: status.UNIMPLEMENTED })
})

test('the port without TLS has nothing but health, and closes connections that speak something else', async () => {
  const { client, port } = await start()
  const raw = (bytes: Buffer): Buffer => bytes
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
  const other = client.makeBidiStreamRequest(path, raw, raw)
  other.on('data', () => undefined)
  const [err] = await new Promise<[{ code: number }]>((resolve) =>
    other.on('error', (e) => resolve([e as never])),
  )
  expect(err.code).toBe(status.UNIMPLEMENTED)

  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\n\r\n'))
  socket.on('error', () => undefined).resume()
  await once(socket, 'close')
})

test('strangers who hold connections to the port without TLS keep no probe away', async () => {
  const { check, port } = await start()
  const strangers = Array.from({ length: 100 }, () => connect(port, '127.0.0.1'))
  for (const stranger of strangers) stranger.on('error', () => undefined).resume()
  onTestFinished(() => {
    for (const stranger of strangers) stranger.destroy()
  })
  await Promise.all(strangers.map((stranger) => once(stranger, 'connect')))
  expect(await check()).toBe(Status.SERVING)
})
