import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { fingerprintOf } from '@overlay/x509'
import { expect, test } from 'vitest'
import { type Authority, newAuthority } from '../authority.js'
import { startFakeController } from './fake-controller.js'
import { startRouter, type TestRouter } from './router.js'
import { type Connection, connectSdk } from './sdk.js'

const megabytes = 1024 * 1024
const sessionToken = 'session'
const apiSessionToken = 'api-session'

async function startNetwork(routerCount: number) {
  const started: AsyncDisposable[] = []
  const use = <T extends AsyncDisposable>(one: T): T => {
    started.push(one)
    return one
  }
  const authority = await newAuthority('authority')
  const member = await authority.certify('member')
  const apiSession = {
    id: '1',
    token: apiSessionToken,
    certFingerprints: [fingerprintOf(new X509Certificate(member.cert))],
    identityId: '',
  }
  const own = await authority.certify('controller', { dns: 'localhost' })
  const controller = use(await startFakeController(own, authority.cert, [apiSession]))
  const routers: TestRouter[] = []
  for (let i = 0; i < routerCount; i++) {
    const identity = await identityOf(authority, `router-${i}`)
    const options = { identity, controllers: [controller.address], hasLinks: routerCount > 1 }
    routers.push(use(await startRouter({ ...options, closeWaitMs: 500 })))
  }
  const sdk = async (router: TestRouter | undefined) =>
    use(
      await connectSdk({
        url: router?.url ?? '',
        certificate: member,
        caPem: authority.cert,
        apiSessionToken,
      }),
    )
  return {
    controller,
    routers,
    sdk,
    async [Symbol.asyncDispose]() {
      for (const one of started.reverse()) await one[Symbol.asyncDispose]()
    },
  }
}

const identityOf = async (authority: Authority, id: string) => ({
  id,
  name: id,
  client: await authority.certify(id),
  server: await authority.certify(id, { dns: 'localhost' }),
  caPem: authority.cert,
})

/** Sends bytes and receives their echo. */
async function echoOf(connection: Connection, sent: Buffer): Promise<Buffer> {
  Readable.from([sent]).pipe(connection)
  const received: Buffer[] = []
  for await (const chunk of connection) received.push(chunk as Buffer)
  return Buffer.concat(received)
}

const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

test('data flows between two applications at one router', async () => {
  await using network = await startNetwork(1)
  const host = await network.sdk(network.routers[0])
  const client = await network.sdk(network.routers[0])
  await host.host(sessionToken)
  const connection = await client.dial(sessionToken)
  const sent = randomBytes(10 * megabytes)
  expect(hashOf(await echoOf(connection, sent))).toBe(hashOf(sent))
})

test('data flows over a link, and continues after the link was lost', async () => {
  await using network = await startNetwork(2)
  const [near, far] = network.routers
  await expect.poll(() => near?.links?.all()).toHaveLength(1)
  await (await network.sdk(far)).host(sessionToken)
  const connection = await (await network.sdk(near)).dial(sessionToken)
  const sent = randomBytes(10 * megabytes)
  const echo = echoOf(connection, sent)
  await once(connection, 'readable')
  near?.links?.cut(far?.id ?? '')
  await expect.poll(() => far?.links?.all()).toHaveLength(0)
  near?.links?.restore(far?.id ?? '')
  expect(hashOf(await echo)).toBe(hashOf(sent))
})

test('an application that reads late receives everything', async () => {
  await using network = await startNetwork(1)
  const host = await network.sdk(network.routers[0])
  const accepted = new Promise<Connection>((onConnection) => host.host(sessionToken, { onConnection }))
  await expect.poll(() => network.routers[0]?.terminators.all()).toMatchObject([{ state: 'established' }])
  const connection = await (await network.sdk(network.routers[0])).dial(sessionToken)
  const sent = randomBytes(30 * megabytes)
  Readable.from([sent]).pipe(connection)
  const receiver = await accepted
  await expect.poll(() => network.routers[0]?.terminators.all()).toHaveLength(1)
  let bytes = 0
  for await (const chunk of receiver) bytes += (chunk as Buffer).length
  expect(bytes).toBe(sent.length)
})

test('a removed session ends its connections and what it hosts', async () => {
  await using network = await startNetwork(1)
  const hosted = await (await network.sdk(network.routers[0])).host(sessionToken)
  const connection = await (await network.sdk(network.routers[0])).dial(sessionToken)
  connection.write('hello')
  await once(connection, 'readable')
  network.controller.removeSession(sessionToken)
  expect(await connection.ended).toBe('session closed')
  expect(await hosted.ended).toBe('session ended')
  await expect.poll(() => network.controller.circuits.size).toBe(0)
})

test('the end of a connection reaches the other application after its last bytes', async () => {
  await using network = await startNetwork(2)
  const [near, far] = network.routers
  await expect.poll(() => near?.links?.all()).toHaveLength(1)
  const host = await network.sdk(far)
  const accepted = new Promise<Connection>((onConnection) => host.host(sessionToken, { onConnection }))
  await expect.poll(() => far?.terminators.all()).toMatchObject([{ state: 'established' }])
  const connection = await (await network.sdk(near)).dial(sessionToken)
  connection.write(randomBytes(megabytes))
  connection.destroy()
  let bytes = 0
  for await (const chunk of await accepted) bytes += (chunk as Buffer).length
  expect(bytes).toBe(megabytes)
  await expect.poll(() => network.controller.circuits.size).toBe(0)
  await expect.poll(() => near?.circuits()).toEqual([])
})
