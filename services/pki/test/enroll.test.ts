import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import { Fault } from '@overlay/rpc'
import { fingerprintOfPem } from '@overlay/x509'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Owners } from '../src/enroll/enroll-method.js'
import { context, faultOf, noRequest, type Pki, startPki } from './network.js'
import { newCsr, newKey, verifies } from './openssl.js'

let pki: Pki
const lines: object[] = []
const log = Object.assign(pino({ level: 'silent' }), {
  info: (facts: object, msg: string) => void lines.push({ ...facts, msg }),
})
beforeAll(async () => {
  pki = await startPki({ log })
})
afterAll(() => pki[Symbol.asyncDispose]())

const addedFor = ({ id }: { readonly id: string }) =>
  pki.added.filter(({ enrollmentId }) => enrollmentId === id)

const noProof = { username: '', password: '', caId: '', peerCertificates: [] }

const router = (method: 'erott' | 'trott', routerId?: string) => pki.routerWish(method, routerId)

test('an identity redeems its token for a certificate of its key, once', async () => {
  const key = newKey('RSA-2048')
  const wish = await pki.wish({ method: 'ott' })
  const { id, token, identityId } = wish
  const csrPem = newCsr('/C=US/CN=any name', { key, more: ['-addext', 'subjectAltName=DNS:x.example'] })

  const { method, certPem, chainPem } = await pki.enroll({ token, csrPem })
  const { pems } = await pki.pki.getTrustBundle({}, context)
  expect(method).toBe('ott')
  expect(verifies(chainPem, pems[0] ?? '', 'sslclient')).toBe('chain: OK')
  expect(chainPem.startsWith(certPem) && certPem.endsWith('\n')).toBe(true)
  const certificate = new X509Certificate(certPem)
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true)
  expect([certificate.subject, certificate.subjectAltName]).toEqual(['C=US\nCN=any name', undefined])
  expect(addedFor(wish)).toEqual([
    { ...noProof, identityId, enrollmentId: id, certPem, isIssuedByNetwork: true },
  ])

  expect(await pki.outstanding()).not.toContainEqual(expect.objectContaining({ id }))
  expect(await faultOf(pki.enroll({ token, csrPem }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('of four concurrent requests with one token, one succeeds', async () => {
  const wish = await pki.wish({})
  const { token } = wish
  const requests = Array.from({ length: 4 }, () => pki.enroll({ token, csrPem: newCsr() }))
  const results = await Promise.allSettled(requests)
  const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.code] : []))
  expect(reasons).toEqual(Array(3).fill('INVALID_ENROLLMENT_TOKEN'))
  expect(addedFor(wish).length).toBe(1)
})

test('requests at the same time find their tokens in one statement, and each gets its own', async () => {
  const wishes = await Promise.all(Array.from({ length: 3 }, () => pki.wish({})))
  const [first] = wishes
  const requests = [...wishes.map(({ token }) => token), first?.token ?? '', randomUUID()].map((token) => ({
    token,
    csrPem: newCsr(),
  }))
  pki.statements.length = 0
  const results = await Promise.allSettled(requests.map((request) => pki.enroll(request)))
  const codes = results.map((result) => (result.status === 'rejected' ? result.reason.code : 'OK'))
  const refusal = 'INVALID_ENROLLMENT_TOKEN'
  expect(codes).toEqual(['OK', 'OK', 'OK', refusal, refusal])
  expect(pki.statements.filter((text) => text.includes('from enrollment where token'))).toHaveLength(1)
  expect(pki.statements.filter((text) => text.includes('claimed_until'))).toEqual([])
  for (const wish of wishes) expect(addedFor(wish)).toHaveLength(1)
})

test.each([
  ['nothing', {}, 'csrPem must not be null or empty'],
  ['no PEM', { csrPem: 'not a csr' }, 'could not decode csrPem as PEM'],
  ['two requests', { csrPem: newCsr() + newCsr() }, 'unexpected PEM blocks at end of CSR'],
  [
    'a weak key',
    { csrPem: newCsr('/CN=x', { key: newKey('RSA-e3') }) },
    'RSA key must have an odd exponent of at least 65537 and at most 64 bits',
  ],
])('%s: the token stays as it was', async (_what, request, cause) => {
  const { token } = await pki.wish({})
  expect(await faultOf(pki.enroll({ token, ...request }))).toEqual(['COULD_NOT_PROCESS_CSR', cause])
  expect((await pki.enroll({ token, csrPem: newCsr() })).method).toBe('ott')
})

test('an unknown token is refused', async () => {
  expect(await faultOf(pki.enroll({ token: randomUUID() }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
  expect(await faultOf(pki.enroll({ token: '' }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('from a number of unknown tokens on their source is told to wait, and its good tokens are redeemed', async () => {
  const from = { ...context, sourceAddress: '192.0.2.77' }
  const enroll = (token: string, csrPem = '') =>
    pki.pki.enroll({ ...noRequest, token, ...(csrPem && { csrPem }) }, from)
  for (let i = 0; i < 100; i++)
    expect(await faultOf(enroll(randomUUID()))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
  await expect(enroll(randomUUID())).rejects.toMatchObject({
    code: 'SERVER_TOO_MANY_REQUESTS',
    retryAfterSeconds: expect.any(Number),
  })
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: 'guesses paused', method: 'enrollment', reason: 'source' }),
  )
  const { token } = await pki.wish({})
  expect((await enroll(token, newCsr())).method).toBe('ott')
  expect(await faultOf(pki.enroll({ token: randomUUID() }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('a user name gets its password; without one the token remains valid', async () => {
  const wish = await pki.wish({ method: 'updb', username: 'alice' })
  const { id, token, identityId } = wish
  expect((await faultOf(pki.enroll({ token })))[0]).toBe('COULD_NOT_VALIDATE')
  expect(await pki.enroll({ token, username: 'mallory', password: 'secret' })).toEqual({
    method: 'updb',
    certPem: '',
    chainPem: '',
    serverChainPem: '',
    caPem: '',
  })
  const nothing = { certPem: '', isIssuedByNetwork: false, caId: '', peerCertificates: [] }
  expect(addedFor(wish)).toEqual([
    { ...nothing, identityId, enrollmentId: id, username: 'alice', password: 'secret' },
  ])
})

test.each(['an edge', 'a transit'] as const)(
  '%s router redeems its token for two certificates',
  async (kind) => {
    const { id, routerId, token } = await router(kind === 'an edge' ? 'erott' : 'trott')
    const names = ['-addext', 'subjectAltName=DNS:r.example,IP:127.0.0.1,URI:spiffe://x/y,email:a@b.example']
    const csrPem = newCsr(kind === 'an edge' ? `/O=o/CN=${routerId}` : '/O=o/CN=someone')

    const answer = await pki.enroll({ token, csrPem, serverCsrPem: newCsr('/CN=s', { more: names }) })
    const { pems } = await pki.pki.getTrustBundle({}, context)
    expect(verifies(answer.chainPem, pems[0] ?? '', 'sslclient')).toBe('chain: OK')
    expect(verifies(answer.serverChainPem, pems[0] ?? '', 'sslserver')).toBe('chain: OK')
    expect(answer.caPem).toBe(pems.map((pem) => `\n${pem}`).join(''))
    expect(new X509Certificate(answer.certPem).subject).toBe(`O=o\nCN=${routerId}`)
    expect(new X509Certificate(answer.serverChainPem)).toMatchObject({
      subject: 'CN=s',
      subjectAltName: 'DNS:r.example, IP Address:127.0.0.1, URI:spiffe://x/y, email:a@b.example',
    })
    expect(new X509Certificate(answer.certPem).subjectAltName).toBeUndefined()
    const { certPem } = answer
    const fingerprint = fingerprintOfPem(certPem)
    expect(pki.admitted.filter(({ enrollmentId }) => enrollmentId === id)).toEqual([
      { routerId, enrollmentId: id, certPem, fingerprint },
    ])
    expect(await pki.outstanding()).not.toContainEqual(expect.objectContaining({ id }))
  },
)

test('a router that requests names of the product gets certificates without them', async () => {
  const { routerId, token } = await router('erott')
  const { trustDomain } = await pki.pki.getTrustBundle({}, context)
  const asked = [
    'DNS:api.example',
    'DNS:*.EXAMPLE',
    'DNS:ctrl.example',
    'DNS:localhost',
    `URI:spiffe://${trustDomain}/controller/c1`,
    `URI:spiffe://${trustDomain}/router/${routerId}`,
  ]
  const more = ['-addext', `subjectAltName=${asked.join()}`]
  const csrPem = newCsr(`/CN=api.example/CN=${routerId}`, { more })
  const answer = await pki.enroll({ token, csrPem, serverCsrPem: newCsr('/CN=api.example', { more }) })
  for (const pem of [answer.certPem, answer.serverChainPem])
    expect(new X509Certificate(pem)).toMatchObject({
      subject: `CN=${routerId}`,
      subjectAltName: `DNS:localhost, URI:spiffe://${trustDomain}/router/${routerId}`,
    })
})

test('a router gets no host that sessions refuses it, and enrolls without it', async () => {
  const { routerId, token } = await router('erott')
  const [mine, other] = ['mine', 'other'].map((name) => `${name}-${randomUUID()}.example`) as [string, string]
  pki.taken.add(other)
  const more = ['-addext', `subjectAltName=DNS:${mine},DNS:${other},DNS:localhost`]
  const csrPem = newCsr(`/CN=${routerId}`, { more })
  const answer = await pki.enroll({ token, csrPem, serverCsrPem: newCsr(`/CN=${other}`, { more }) })
  for (const pem of [answer.certPem, answer.serverChainPem])
    expect(new X509Certificate(pem)).toMatchObject({
      subject: `CN=${routerId}`,
      subjectAltName: `DNS:${mine}, DNS:localhost`,
    })
  expect(pki.claimed).toContainEqual({ routerId, hosts: [mine, other] })
})

test('a router whose hosts sessions cannot check, as in the release before, enrolls later with the same token', async () => {
  const { routerId, token } = await router('erott')
  const enroll = () =>
    pki.enroll({ token, csrPem: newCsr(`/CN=${routerId}`), serverCsrPem: newCsr('/CN=edge') })
  pki.claimFailures.add(routerId)
  await expect(enroll()).rejects.toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 30 })
  pki.claimFailures.delete(routerId)
  await enroll() // with another key: the first request holds no claim of the token
})

test('routers whose hosts are being checked keep nobody else from enrolling', async () => {
  const checked = Promise.withResolvers<void>()
  const waiting = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const { routerId, token } = await router('erott')
      pki.held.set(routerId, checked.promise)
      const csrPem = newCsr(`/CN=${routerId}`)
      return { routerId, enrolled: () => pki.enroll({ token, csrPem, serverCsrPem: newCsr() }) }
    }),
  )
  const answers = Promise.all(waiting.map(({ enrolled }) => enrolled()))
  const isClaiming = ({ routerId }: { routerId: string }) =>
    pki.claimed.some((claim) => claim.routerId === routerId)
  await expect.poll(() => waiting.every(isClaiming), { timeout: 30_000 }).toBe(true)
  const { token } = await pki.wish({ method: 'ott' })
  await pki.enroll({ token, csrPem: newCsr() })
  checked.resolve()
  await answers
})

test('a network may restrict the names of routers to a pattern', async () => {
  await using pki = await startPki({ routerNames: ['[name].routers.example'] })
  const { routerId, token } = await pki.routerWish('erott')
  pki.names.set(routerId, 'berlin')
  const more = ['-addext', 'subjectAltName=DNS:berlin.routers.example,DNS:paris.routers.example,IP:192.0.2.1']
  const csrPem = newCsr(`/CN=${routerId}`)
  const answer = await pki.enroll({ token, csrPem, serverCsrPem: newCsr('/CN=x', { more }) })
  const names = new X509Certificate(answer.serverChainPem).subjectAltName ?? ''
  expect(names.split(', ').filter((name) => !name.startsWith('URI:'))).toEqual(['DNS:berlin.routers.example'])
})

test.each([
  ['no request', {}, ['MISSING_OR_INVALID_CSR', 'invalid server CSR']],
  ['none for the server', { csrPem: newCsr('/CN=r1') }, ['MISSING_OR_INVALID_CSR', 'invalid server CSR']],
  ['none for the client', { serverCsrPem: newCsr() }, ['MISSING_OR_INVALID_CSR', 'invalid client CSR']],
  ['empty ones', { csrPem: '', serverCsrPem: '' }, ['COULD_NOT_PROCESS_CSR', 'invalid server CSR']],
  ['a broken one', { csrPem: 'x', serverCsrPem: newCsr() }, ['COULD_NOT_PROCESS_CSR', 'invalid client CSR']],
  [
    'another name',
    { csrPem: newCsr('/CN=r2'), serverCsrPem: newCsr() },
    ['COULD_NOT_PROCESS_CSR', 'invalid client CSR'],
  ],
])('an edge router that sends %s is refused, and its token stays', async (_what, request, fault) => {
  const { routerId, token } = await router('erott')
  expect(await faultOf(pki.enroll({ token, ...request }))).toEqual(fault)
  await pki.enroll({ token, csrPem: newCsr(`/CN=${routerId}`), serverCsrPem: newCsr() })
})

const noRouter = () => Promise.reject(new Error('no router enrolls'))
const noRouters = { admitRouter: noRouter, claimRouterHosts: noRouter }

test('a refusal of the owner releases the token at once', async () => {
  const refusals = [new Fault('COULD_NOT_VALIDATE', 'taken'), new Fault('NOT_FOUND')]
  const addAuthenticator = async () => {
    throw refusals.shift()
  }
  const owners = { identity: { addAuthenticator }, sessions: noRouters }
  await using pki = await startPki({ owners })
  const { token } = await pki.wish({ method: 'updb', username: 'alice' })
  expect(await faultOf(pki.enroll({ token, password: 'secret' }))).toEqual(['COULD_NOT_VALIDATE', 'taken'])
  // the identity is deleted: its token has no owner
  expect(await faultOf(pki.enroll({ token, password: 'secret' }))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('no other request may redeem a token while it is unknown whether the owner has stored the outcome', async () => {
  const addAuthenticator = async () => {
    throw new Fault('TIMEOUT')
  }
  const owners = { identity: { addAuthenticator }, sessions: noRouters }
  await using pki = await startPki({ owners })
  const { token } = await pki.wish({ method: 'updb', username: 'alice' })
  const request = { token, password: 'secret' }
  expect(await faultOf(pki.enroll(request))).toEqual(['TIMEOUT'])
  expect(await faultOf(pki.enroll(request))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('a certificate may be requested again while it is unknown whether identity has stored one: it stores one only', async () => {
  const failures = [new Fault('TIMEOUT')]
  const addAuthenticator: Owners['identity']['addAuthenticator'] = async (request, context) => {
    const failure = failures.shift()
    if (failure) throw failure
    return pki.owners.identity.addAuthenticator(request, context)
  }
  await using pki = await startPki({ owners: { identity: { addAuthenticator }, sessions: noRouters } })
  const { token } = await pki.wish({})
  const request = { token, csrPem: newCsr() }
  expect(await faultOf(pki.enroll(request))).toEqual(['TIMEOUT'])
  expect((await pki.enroll(request)).method).toBe('ott')
  expect(await faultOf(pki.enroll(request))).toEqual(['INVALID_ENROLLMENT_TOKEN'])
})

test('an enrollment that is refreshed while it is redeemed has ended', async () => {
  let meanwhile = async (): Promise<unknown> => undefined
  const addAuthenticator: Owners['identity']['addAuthenticator'] = async (request, context) => {
    await meanwhile()
    return pki.owners.identity.addAuthenticator(request, context)
  }
  await using pki = await startPki({ owners: { identity: { addAuthenticator }, sessions: noRouters } })
  const { id, token } = await pki.wish({})
  meanwhile = () => pki.pki.refreshEnrollment({ id, expiresAtMs: Date.now() + 60_000 }, context)
  expect((await pki.enroll({ token, csrPem: newCsr() })).method).toBe('ott')
  expect(await pki.outstanding()).toEqual([])
})

test('an expired token of every method is refused', async () => {
  let now = new Date()
  await using pki = await startPki({ now: () => now })
  const wishes = [
    await pki.wish({}),
    await pki.wish({ method: 'updb', username: 'alice' }),
    await pki.routerWish('erott'),
    await pki.routerWish('trott'),
  ]
  now = new Date(now.getTime() + 180 * 60_000 + 1)
  for (const { token } of wishes)
    expect(await faultOf(pki.enroll({ token, csrPem: newCsr(), password: 'secret' }))).toEqual([
      'ENROLLMENT_EXPIRED',
    ])
})

test('a full queue refuses before anything is signed, and the token stays', async () => {
  await using pki = await startPki({ enrollmentsRunning: 0, enrollmentsWaiting: 0 })
  const { id, token } = await pki.wish({})
  expect(await faultOf(pki.enroll({ token, csrPem: newCsr() }))).toEqual(['SERVER_TOO_MANY_REQUESTS'])
  expect(pki.added).toEqual([])
  expect((await pki.outstanding()).map((enrollment) => enrollment.id)).toEqual([id])
})

test('a refused enrollment leaves method, enrollment, identity and address in the log, not the token', async () => {
  const { id, identityId, token } = await pki.wish({ method: 'ott' })
  const request = { username: '', password: '', peerCertificates: [] }
  const refusals = [
    [
      { method: '', token },
      { method: 'ott', enrollmentId: id, identityId },
    ],
    [
      { method: 'ottca', token: 'a-guess' },
      { method: 'ottca', reason: 'INVALID_ENROLLMENT_TOKEN' },
    ],
    [
      { method: '', token: 'a-guess' },
      { method: 'unknown', reason: 'INVALID_ENROLLMENT_TOKEN' },
    ],
  ] as const
  for (const [sent, logged] of refusals) {
    lines.length = 0
    const from = { ...context, requestId: 'r1', sourceAddress: '192.0.2.7' }
    await expect(pki.pki.enroll({ ...request, ...sent }, from)).rejects.toBeInstanceOf(Fault)
    const line = { msg: 'enrollment refused', ...logged, requestId: 'r1', sourceAddress: '192.0.2.7' }
    expect(lines).toEqual([expect.objectContaining(line)])
    expect(JSON.stringify(lines)).not.toContain(sent.token)
  }
})
