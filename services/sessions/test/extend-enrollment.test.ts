import { X509Certificate } from 'node:crypto'
import {
  EdgeError,
  EnrollmentCertsResponse,
  ExtendRouterRequest,
  ExtendRouterVerifyRequest,
  edgeType,
} from '@overlay/channel'
import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { routerCertificates } from '../src/certificates/router-certificates.js'
import { checkCertificates } from '../src/certificates/watch-certificates.js'
import { routerMethods } from '../src/methods/router-methods.js'
import { type Replica, startControlNetwork, type TestNetwork } from './control.js'
import { context, waitForFollowers } from './routers.js'
import { log } from './store.js'
import { connectRouter, type RouterKey, type TestRouter } from './test-router.js'

let network: TestNetwork
let replica: Replica
const issued: RouterKey[] = []
const pki = {
  async issueRouterCertificates({ routerId, csrPem }: { routerId: string; csrPem: string }) {
    if (csrPem === 'bad') throw new Fault('COULD_NOT_PROCESS_CSR')
    const key = await network.certify(routerId)
    issued.push(key)
    const intermediatesPem = 'intermediates\n'
    return { certPem: key.certPem, serverCertPem: 'server\n', intermediatesPem, caPem: 'bundle\n' }
  },
}
beforeAll(async () => {
  network = await startControlNetwork()
  replica = await network.replica('sessions', { pki })
})
afterAll(() => network[Symbol.asyncDispose]())

const rowOf = async (id: string) => {
  const { rows } = await network.db.query(sql`
    select fingerprint, cert_pem as "certPem", unverified_fingerprint as unverified from router where id = ${id}`)
  return rows[0]
}
const formerOf = (id: string) => replica.directory.get(id)?.formerFingerprints

/** Asks over the channel for new certificates. Resolves with the last key that pki has issued. */
async function extend(router: TestRouter, { requireVerification = true } = {}) {
  const request = { clientCertCsr: 'csr', serverCertCsr: 'csr', requireVerification }
  const before = router.received.length
  router.channel.send({ type: edgeType.extendRouter, body: ExtendRouterRequest.encode(request).finish() })
  const answer = () => router.received.slice(before).find(({ type }) => type === edgeType.enrollmentCerts)
  const { body } = await vi.waitUntil(answer, { timeout: 30_000, interval: 5 })
  const certificates = EnrollmentCertsResponse.decode(body)
  const key = issued.at(-1)
  if (!key) throw new Error('nothing issued')
  return { certificates, key }
}

async function verify(router: TestRouter, clientCertPem: string): Promise<string> {
  const body = ExtendRouterVerifyRequest.encode({ clientCertPem }).finish()
  const answer = await router.channel.request({ type: edgeType.extendRouterVerify, body }, 30_000)
  expect(answer.type).toBe(edgeType.error)
  return EdgeError.decode(answer.body).code
}

const connect = (key: RouterKey) => connectRouter({ port: replica.port, key })

test('a new certificate replaces the old one when the router has verified it, and the channel stays', async () => {
  const old = await network.createRouter('a')
  const router = await connect(old)
  const { certificates, key } = await extend(router)
  expect(certificates).toEqual({
    clientCertPem: `${key.certPem}intermediates\n`,
    serverCertPem: 'server\nintermediates\n',
    caCertsPem: 'bundle\n',
  })
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: old.fingerprint, unverified: key.fingerprint })

  expect(await verify(router, certificates.clientCertPem)).toBe('')
  const row = { fingerprint: key.fingerprint, certPem: key.certPem, unverified: null }
  expect(await rowOf(old.id)).toEqual(row)
  expect(router.channel.closed.aborted).toBe(false)
  router.channel.close('done')
  await connect(key)
  await expect.poll(() => formerOf(old.id)).toEqual([])
  await expect(connect(old)).rejects.toThrow('closed before the hello')
})

test('a router that did not receive the answer to its verification keeps its old certificate', async () => {
  const old = await network.createRouter('h')
  const stopped = await connect(old)
  const first = await extend(stopped)
  await verify(stopped, first.certificates.clientCertPem)
  const again = await connect(old)
  const second = await extend(again)
  expect(await verify(again, second.certificates.clientCertPem)).toBe('')
  expect(formerOf(old.id)).toEqual([first.key.fingerprint, old.fingerprint])
  again.channel.close('done')
  await connect(second.key)
  await expect.poll(() => formerOf(old.id)).toEqual([])
})

test('a connection that is older than the certificate of its router serves to renew that one', async () => {
  const old = await network.createRouter('i')
  const router = await connect(old)
  for (let year = 0; year < 3; year++)
    expect(await verify(router, (await extend(router)).certificates.clientCertPem)).toBe('')
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: issued.at(-1)?.fingerprint, unverified: null })
})

test('a router that connects with its new certificate has verified it', async () => {
  const old = await network.createRouter('j')
  const { key } = await extend(await connect(old))
  await connect(key)
  const row = { fingerprint: key.fingerprint, certPem: key.certPem, unverified: null }
  await expect.poll(() => rowOf(old.id)).toEqual(row)
  await expect.poll(() => replica.directory.get(old.id)?.fingerprint).toBe(key.fingerprint)
  await expect(connect(old)).rejects.toThrow('closed before the hello')
})

test('a repeated request replaces the certificate that is not verified', async () => {
  const old = await network.createRouter('k')
  const router = await connect(old)
  const lost = await extend(router)
  const { certificates, key } = await extend(router)
  expect(await verify(router, lost.certificates.clientCertPem)).toBe('INVALID_CLIENT_PEM')
  expect(await verify(router, certificates.clientCertPem)).toBe('')
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: key.fingerprint })
  await expect(connect(lost.key)).rejects.toThrow('closed before the hello')
})

test('a chain is verified by its first certificate, also if its base64 has no padding', async () => {
  const router = await connect(await network.createRouter('r'))
  let extended = await extend(router)
  while (new X509Certificate(extended.key.certPem).raw.length % 3 !== 0) extended = await extend(router)
  expect(await verify(router, extended.certificates.clientCertPem)).toBe('')
})

test('without verification the new certificate replaces the old one at once', async () => {
  const old = await network.createRouter('b')
  const { key } = await extend(await connect(old), { requireVerification: false })
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: key.fingerprint, unverified: null })
})

test('a router verifies only the certificate that it has been given', async () => {
  const [old, other] = [await network.createRouter('c'), await network.createRouter('d')]
  const router = await connect(old)
  expect(await verify(router, old.certPem)).toBe('INVALID_ROUTER_STATE')
  const { key } = await extend(router)
  expect(await verify(router, '')).toBe('MISSING_CLIENT_PEM')
  expect(await verify(router, old.certPem)).toBe('INVALID_CLIENT_PEM')
  expect(await verify(router, 'none')).toBe('INVALID_CLIENT_PEM')
  expect(await verify(await connect(other), key.certPem)).toBe('INVALID_ROUTER_STATE')
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: old.fingerprint })
  expect(await verify(router, key.certPem)).toBe('')
  expect(await verify(router, key.certPem)).toBe('INVALID_ROUTER_STATE')
})

test('a new enrollment ends the certificate that is not verified', async () => {
  const old = await network.createRouter('e')
  const router = await connect(old)
  await verify(router, (await extend(router)).certificates.clientCertPem)
  const { key } = await extend(router)
  await network.resetEnrollment(old.id, replica)
  expect(await rowOf(old.id)).toEqual({ fingerprint: null, certPem: null, unverified: null })
  expect(formerOf(old.id)).toEqual([])
  for (const each of [old, key]) await expect(connect(each)).rejects.toThrow('closed before the hello')
})

test('routers whose certificates end soon are reported, unless they are disabled', async () => {
  const in4Days = new Date(Date.now() + 4 * 86_400_000)
  const [late, disabled] = [
    await network.createRouter('l', { to: in4Days }),
    await network.createRouter('m', { to: new Date(Date.now() + 86_400_000) }),
  ]
  await network.updateRouter(disabled.id, { disabled: true }, replica)
  const warnings: unknown[] = []
  const log = { warn: (facts: object) => void warnings.push(facts) }
  await checkCertificates(network.db, log, new Date())
  const expiry = new Date(new X509Certificate(late.certPem).validTo)
  expect(warnings).toContainEqual({ routerId: late.id, name: 'l', expiry })
  expect(warnings).not.toContainEqual(expect.objectContaining({ routerId: disabled.id }))
})

/** The method behind the API. */
const overApi = (peer: RouterKey | undefined, csrPem = 'csr') => {
  const { changeLog, directory } = replica
  const certificates = routerCertificates({ changeLog, directory, pki })
  const peerCertificates = peer ? [new X509Certificate(peer.certPem).raw] : []
  const { extendRouter } = routerMethods({
    changeLog,
    certificates,
    log,
    waitForFollowers,
  })
  return extendRouter({ csrPem, serverCsrPem: 'csr', peerCertificates }, context)
}

test('over the API, the certificate of the connection is replaced at once', async () => {
  const old = await network.createRouter('f', { to: new Date(Date.now() - 1000) })
  const { chainPem, serverCertPem, position } = await overApi(old)
  const key = issued.at(-1)
  expect([chainPem, serverCertPem]).toEqual([`${key?.certPem}intermediates\n`, 'server\n'])
  expect(position).toBeDefined()
  expect(await rowOf(old.id)).toMatchObject({ fingerprint: key?.fingerprint, certPem: key?.certPem })
  await expect(overApi(old)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  await overApi(key)
})

test('over the API, only the current certificate of a router that is not disabled counts', async () => {
  const key = await network.createRouter('g')
  await expect(overApi(undefined)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  await expect(overApi(await network.certify(key.id))).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  await expect(overApi(key, 'bad')).rejects.toMatchObject({ code: 'COULD_NOT_PROCESS_CSR' })
  await network.updateRouter(key.id, { disabled: true }, replica)
  await expect(overApi(key)).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  expect(await rowOf(key.id)).toMatchObject({ fingerprint: key.fingerprint })
})
