import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConnectionOptions, connect } from 'node:tls'
import pino from 'pino'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import {
  authority,
  newAuthority,
  type TestAuthority,
  type TlsFiles,
  testTls,
} from '../testing/test-certificates.js'
import {
  changeMethods,
  context,
  contexts,
  kindsOfCalls,
  sendSmall,
  serverTls,
  startServer,
} from '../testing/test-service.js'
import type { Refusal } from './check-caller.js'
import { callersOf } from './method-table.js'
import { contextOptionsOf, openPeerTls, type PeerTls } from './peer-tls.js'
import { connectPeers, type Peers } from './peers.js'
import { remote } from './remote.js'

const refusals: Refusal[] = []
beforeEach(() => {
  refusals.length = 0
})
const refused = (refusal: Refusal): void => {
  refusals.push(refusal)
}
const silent = pino({ level: 'silent' })

const peersOf = (tls: PeerTls, port: number): Peers => {
  const peers = connectPeers(`127.0.0.1:${port}`, { tls, service: 'policy' })
  onTestFinished(() => peers[Symbol.asyncDispose]())
  return peers
}

/** Ends when the server has refused the connection. */
async function knock(port: number, options: ConnectionOptions): Promise<void> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: 'policy',
    ca: authority.pem,
    ALPNProtocols: ['h2'],
    ...options,
  })
  socket.on('error', () => undefined) // 'close' follows
  socket.resume()
  await new Promise((resolve) => socket.on('close', resolve))
}

const contextOf = ({ certificate, key, authority }: TlsFiles): ConnectionOptions =>
  contextOptionsOf({ certificates: certificate, key, authorities: authority })

const past = { from: new Date(Date.now() - 7_200_000), to: new Date(Date.now() - 3_600_000) }
const another = await newAuthority()
const strangers: [string, ConnectionOptions, string][] = [
  [
    'without a certificate',
    { checkServerIdentity: () => undefined },
    'ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE',
  ],
  [
    'with a certificate of another authority',
    contextOf({ ...(await another.issue(['sessions'])), authority: authority.pem }),
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ],
  ['with an expired certificate', contextOf(await authority.issue(['sessions'], past)), 'CERT_HAS_EXPIRED'],
  ['with a certificate that names no peer', contextOf(await authority.issue(['localhost'])), 'names no peer'],
  [
    'with a certificate for servers only',
    contextOf(await authority.issue(['sessions'], { purposes: ['1.3.6.1.5.5.7.3.1'] })),
    'INVALID_PURPOSE',
  ],
  ['without HTTP/2', { ...contextOf(await authority.issue(['sessions'])), ALPNProtocols: [] }, 'no HTTP/2'],
  [
    'with TLS 1.2',
    {
      ...contextOf(await authority.issue(['sessions'])),
      minVersion: 'TLSv1.2',
      maxVersion: 'TLSv1.2',
      ciphers: 'DEFAULT',
    },
    'ERR_SSL_UNSUPPORTED_PROTOCOL',
  ],
]

describe('a connection is refused', () => {
  test.each(strangers)('%s', async (_what, options, reason) => {
    await using server = await startServer(0, 'a', { refused })
    await knock(server.port, options)
    expect(refusals).toEqual([expect.objectContaining({ reason })])
  })
})

describe.each(kindsOfCalls)('a %s', (kind, send) => {
  /** sessions may make the small call of these tests, and gateway the one with a large answer. */
  const [allowed, other] =
    kind === 'call with a large answer'
      ? (['gateway', 'sessions'] as const)
      : (['sessions', 'gateway'] as const)

  test('of a method of its caller is answered', async () => {
    await using server = await startServer(0, 'a', { refused, callersOf })
    expect(await send(peersOf(await testTls(allowed), server.port), 'yes', context())).toEqual(['alice', 'a'])
    expect(refusals).toEqual([])
  })
  test('of a method of another caller is refused, and not executed', async () => {
    await using server = await startServer(0, 'a', { refused, callersOf })
    for (const name of [other, 'policy', 'operator'] as const) {
      const before = contexts.length
      const call = send(peersOf(await testTls(name), server.port), 'yes', context())
      await expect(call).rejects.toMatchObject({
        code: 'UNHANDLED',
        cause: { message: expect.stringMatching(`PERMISSION_DENIED.*${name} may not call`) },
      })
      expect(contexts.length).toBe(before)
      expect(refusals).toEqual([
        {
          reason: 'caller',
          caller: name,
          method: expect.stringContaining('/overlay.policy.v1.PolicyService/'),
        },
      ])
      refusals.length = 0
    }
  })
  test('never reaches a server with the certificate of another service', async () => {
    await using pki = await startServer(0, 'a', { tls: await testTls('pki'), refused })
    const before = contexts.length
    const call = send(peersOf(await testTls(allowed), pki.port), 'yes', context(2000))
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' }) // as before the first start of the service
    expect(contexts.length).toBe(before)
  })
})

test('a stream of another caller is refused', async () => {
  await using server = await startServer(0, 'a', { refused, callersOf })
  const { watch } = remote(changeMethods, peersOf(await testTls('operator'), server.port))
  const read = async (): Promise<void> => {
    for await (const _ of watch({ after: undefined, gatherMs: 0, kinds: [] }, context())) break
  }
  await expect(read()).rejects.toMatchObject({
    cause: { message: expect.stringContaining('PERMISSION_DENIED') },
  })
  expect(refusals).toEqual([{ reason: 'caller', caller: 'operator', method: changeMethods.watch.path }])
})

test('peers at a Unix socket prove their services, too', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(directory, { recursive: true }))
  const address = `unix:${join(directory, 'a.sock')}`
  await using _server = await startServer(address, 'a', { refused, callersOf })
  await using sessions = connectPeers(address, { tls: await testTls('sessions'), service: 'policy' })
  expect(await sendSmall(sessions, 'yes', context())).toEqual(['alice', 'a'])
  await using gateway = connectPeers(address, { tls: await testTls('gateway'), service: 'policy' })
  await expect(sendSmall(gateway, 'yes', context())).rejects.toMatchObject({ code: 'UNHANDLED' })
})

describe('a rotation', () => {
  /** A peer whose certificate can be replaced. */
  async function rotatable(name: 'policy' | 'sessions') {
    const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
    onTestFinished(() => rm(directory, { recursive: true }))
    const write = async (issuer: TestAuthority, trusted: string): Promise<string> => {
      const { certificate, key } = await issuer.issue([name])
      await writeFile(join(directory, 'tls.crt'), certificate)
      await writeFile(join(directory, 'tls.key'), key)
      await writeFile(join(directory, 'ca.crt'), trusted)
      return certificate
    }
    await write(authority, authority.pem)
    const tls = await openPeerTls(directory, silent)
    onTestFinished(() => tls[Symbol.dispose]())
    return {
      tls,
      async renew(issuer: TestAuthority, trusted: string): Promise<void> {
        const certificate = await write(issuer, trusted)
        await expect
          .poll(() => tls.contextOptions(), { timeout: 30_000 })
          .toMatchObject({ cert: certificate, ca: trusted })
      },
    }
  }

  test('of certificates and authorities fails no call and ends no stream', async () => {
    const [server, client] = [await rotatable('policy'), await rotatable('sessions')]
    await using lasting = await startServer(0, 'a', { tls: server.tls })
    await using policy = await startServer(0, 'a', {
      tls: server.tls,
      connectionAgeMs: 50,
    })
    const peers = peersOf(client.tls, policy.port)
    const lastingPeers = peersOf(client.tls, lasting.port)

    const stop = new AbortController()
    let messages = 0
    const stream = (async () => {
      const watch = remote(changeMethods, lastingPeers).watch
      for await (const _ of watch(
        { after: undefined, gatherMs: 0, kinds: [] },
        context(undefined, stop.signal),
      ))
        messages++
    })()
    await expect.poll(() => messages).toBe(1000)
    let calls = 0
    const running = kindsOfCalls.map(async ([, send]) => {
      for (; !stop.signal.aborted; calls++)
        expect(await send(peers, 'yes', context())).toEqual(['alice', 'a'])
    })
    const callsFinish = async (): Promise<void> => {
      const [before, startedMs] = [calls, performance.now()]
      const connectionsAreNew = () => performance.now() - startedMs > 200
      await expect.poll(() => calls > before + 500 && connectionsAreNew(), { timeout: 30_000 }).toBe(true)
    }

    const next = await newAuthority()
    const both = next.pem + authority.pem
    await callsFinish()
    for (const peer of [server, client]) await peer.renew(authority, authority.pem)
    await callsFinish()
    for (const peer of [server, client]) await peer.renew(authority, both)
    await callsFinish()
    for (const peer of [client, server]) await peer.renew(next, both)
    await callsFinish()
    for (const peer of [server, client]) await peer.renew(next, next.pem)
    await callsFinish()

    const late = peersOf(await testTls('sessions'), policy.port)
    await expect(sendSmall(late, 'yes', context(1000))).rejects.toMatchObject({ code: 'TIMEOUT' }) // of the old authority
    const current = peersOf(await testTls('sessions', next), policy.port)
    expect(await sendSmall(current, 'yes', context())).toEqual(['alice', 'a'])
    stop.abort()
    await Promise.all([stream, ...running])
  })

  test('does not let a connection resume from before it', async () => {
    await using server = await startServer(0, 'a', { tls: serverTls })
    const options = { port: server.port, host: '127.0.0.1', servername: 'policy', ALPNProtocols: ['h2'] }
    const set = contextOf(await authority.issue(['sessions']))
    const first = connect({ ...options, ...set })
    const [session] = (await once(first, 'session')) as [Buffer]
    first.destroy()
    const second = connect({ ...options, ...set, session })
    await once(second, 'secureConnect')
    expect(second.isSessionReused()).toBe(false)
    second.destroy()
  })
})
