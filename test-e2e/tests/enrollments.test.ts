import { createPublicKey, type JsonWebKey, randomUUID, verify, X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Authority, newAuthority } from '../authority.js'
import { type Answer, type Certificate, type Client, openClient, type Server } from '../client.js'
import { keyAndRequest } from '../member.js'
import { type Network, startNetwork } from '../network.js'

const api = '/edge/client/v1'
const PEM = 'application/x-pem-file'
const JSON_TYPE = 'application/json'

let network: Network
let server: Server
let admin: Admin
let anonymous: Client
let authority: Authority
let caId: string
let count = 0
let turn = 0
const newName = (): string => `enrollment-${count++}`

beforeAll(async () => {
  network = await startNetwork({ gateways: 2, env: { OVERLAY_ENROLLMENTS_WAITING: '60' } })
  server = { addresses: network.gateways, caPem: network.caPem }
  admin = await network.admin(...network.gateways)
  anonymous = openClient(server, api)
  authority = await newAuthority('factory')
  const flags = { isOttCaEnrollmentEnabled: true, isAutoCaEnrollmentEnabled: true, isAuthEnabled: true }
  caId = await admin.create('cas', { name: newName(), certPem: authority.cert, identityRoles: [], ...flags })
  const { verificationToken } = await admin.request<{ verificationToken: string }>('GET', `/cas/${caId}`)
  await admin.request('POST', `/cas/${caId}/verify`, (await authority.certify(verificationToken)).cert)
})
afterAll(() => network[Symbol.asyncDispose]())

/** What one client redeems, by `/enroll` or by the path of the method. */
interface Attempt {
  readonly id: string
  readonly token: string
  readonly certificate?: Certificate
  /** Bodies that fit the method. */
  readonly body: unknown
  typedBody(token: string): object
  /** For the query of the typed path. */
  readonly query?: (token: string) => string
}

async function identity(enrollment: object) {
  const id = await admin.create('identities', { name: newName(), type: 'Device', isAdmin: false, enrollment })
  const { enrollment: shown } = await admin.request<{ enrollment: Record<string, { token: string }> }>(
    'GET',
    `/identities/${id}`,
  )
  return { id, token: Object.values(shown)[0]?.token ?? '' }
}

async function router(kind: 'edge-routers' | 'transit-routers'): Promise<Attempt> {
  const id = await admin.create(kind, { name: newName() })
  const { enrollmentToken } = await admin.request<{ enrollmentToken: string }>('GET', `/${kind}/${id}`)
  const { csr } = await keyAndRequest(id)
  const typedBody = (token: string) => ({ token, clientCsr: csr, serverCsr: csr })
  return { id, token: enrollmentToken, body: { certCsr: csr, serverCertCsr: csr }, typedBody }
}

const methods = {
  async ott(): Promise<Attempt> {
    const { csr } = await keyAndRequest()
    return {
      ...(await identity({ ott: true })),
      body: csr,
      typedBody: (token) => ({ token, clientCsr: csr }),
    }
  },
  async ottca(): Promise<Attempt> {
    const certificate = await authority.certify(newName())
    return { ...(await identity({ ottca: caId })), certificate, body: {}, typedBody: (token) => ({ token }) }
  },
  async updb(): Promise<Attempt> {
    const body = { username: newName(), password: 'correct horse' }
    const query = (token: string) => `?token=${token}`
    return { ...(await identity({ updb: body.username })), body, typedBody: () => body, query }
  },
  async ca(): Promise<Attempt> {
    const certificate = await authority.certify(newName())
    return { id: '', token: '', certificate, body: {}, typedBody: () => ({}) }
  },
  erott: () => router('edge-routers'),
  trott: () => router('transit-routers'),
}
type Method = keyof typeof methods
const all = Object.keys(methods) as Method[]
const withToken = all.filter((method) => method !== 'ca')

/** Sends the attempt by one of the two paths, to the gateways in turn. */
async function send(
  method: Method,
  path: 'enroll' | 'typed',
  attempt: Attempt,
  { token = attempt.token, headers = {} }: { token?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const gateway = network.gateways[turn++ % network.gateways.length] ?? ''
  using client = openClient({ ...server, addresses: [gateway] }, api, attempt.certificate)
  const query = token === '' ? `?method=${method}` : `?method=${method}&token=${token}`
  return path === 'enroll'
    ? await client.call('POST', `/enroll${query}`, attempt.body, headers)
    : await client.call(
        'POST',
        `/enroll/${method}${attempt.query?.(token) ?? ''}`,
        attempt.typedBody(token),
        headers,
      )
}
const outcomeOf = ({ status, body }: Answer): string => `${status} ${body.error?.code ?? 'ok'}`
const invalidToken = '400 INVALID_ENROLLMENT_TOKEN'

/** The members of a successful answer. */
const membersOf = {
  ott: ['cert'],
  ottca: [],
  updb: [],
  ca: [],
  erott: ['ca', 'cert', 'serverCert'],
  trott: ['ca', 'cert', 'serverCert'],
}

describe.each(['enroll', 'typed'] as const)('by the path: %s', (path) => {
  test.each(all)('%s answers JSON, and redeems once', async (method) => {
    const attempt = await methods[method]()
    const { status, type, body } = await send(method, path, attempt)
    const members = path === 'typed' && method === 'ott' ? ['ca', 'cert'] : membersOf[method]
    expect([status, type, Object.keys(body.data as object).sort(), body.meta]).toEqual([
      200,
      JSON_TYPE,
      members,
      {},
    ])
    const again = method === 'ca' ? '409 CERT_IN_USE' : invalidToken
    expect(outcomeOf(await send(method, path, attempt))).toBe(again)
  })

  test.each(all)('of four concurrent redemptions of %s, one succeeds', async (method) => {
    const attempt = await methods[method]()
    const answers = await Promise.all(Array.from({ length: 4 }, () => send(method, path, attempt)))
    const refused = method === 'ca' ? '409 CERT_IN_USE' : invalidToken
    expect(answers.map(outcomeOf).sort()).toEqual(['200 ok', ...Array<string>(3).fill(refused)].sort())
  })

  test.each(withToken)('%s refuses unknown tokens', async (method) => {
    const attempt = await methods[method]()
    expect(outcomeOf(await send(method, path, attempt, { token: randomUUID() }))).toBe(invalidToken)
  })

  test.each(['ott', 'ottca', 'updb'] as const)(
    '%s redeems a refreshed token, not the one before',
    async (method) => {
      const attempt = await methods[method]()
      const [outstanding] = await admin.request<{ id: string }[]>(
        'GET',
        `/identities/${attempt.id}/enrollments`,
      )
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      await admin.request('POST', `/enrollments/${outstanding?.id}/refresh`, { expiresAt })
      const { token } = await admin.request<{ token: string }>('GET', `/enrollments/${outstanding?.id}`)
      expect(outcomeOf(await send(method, path, attempt))).toBe(invalidToken)
      expect(outcomeOf(await send(method, path, attempt, { token }))).toBe('200 ok')
    },
  )

  test.each(['ott', 'ottca', 'updb'] as const)(
    '%s is possible again after a re-enrollment',
    async (method) => {
      const attempt = await methods[method]()
      expect(outcomeOf(await send(method, path, attempt))).toBe('200 ok')
      const [own] = await admin.request<{ id: string }[]>('GET', `/identities/${attempt.id}/authenticators`)
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      await admin.request('POST', `/authenticators/${own?.id}/re-enroll`, { expiresAt })
      const [next] = await admin.request<{ method: string; token: string }[]>(
        'GET',
        `/identities/${attempt.id}/enrollments`,
      )
      expect(next?.method).toBe(method)
      expect(outcomeOf(await send(method, path, attempt, { token: next?.token ?? '' }))).toBe('200 ok')
    },
  )

  test('an edge router that is to enroll again redeems its new token only', async () => {
    const attempt = await methods.erott()
    expect(outcomeOf(await send('erott', path, attempt))).toBe('200 ok')
    await admin.request('POST', `/edge-routers/${attempt.id}/re-enroll`)
    const { enrollmentToken: token } = await admin.request<{ enrollmentToken: string }>(
      'GET',
      `/edge-routers/${attempt.id}`,
    )
    expect(outcomeOf(await send('erott', path, attempt))).toBe(invalidToken)
    expect(outcomeOf(await send('erott', path, attempt, { token }))).toBe('200 ok')
  })
})

test.each(withToken)(
  'a token of %s is valid at the path of its method only, and under any method at /enroll',
  async (method) => {
    const attempt = await methods[method]()
    const others = withToken.filter((other) => other !== method)
    for (const other of others) {
      const foreign = { ...(await methods[other]()), token: attempt.token }
      expect(outcomeOf(await send(other, 'typed', foreign))).toBe(invalidToken)
    }
    const named = others[0] ?? method
    expect(outcomeOf(await send(named, 'enroll', attempt))).toBe('200 ok')
  },
)

test.each([
  ['nothing', undefined, PEM],
  ['*/*', '*/*', PEM],
  ['application/*', 'application/*', PEM],
  [PEM, PEM, PEM],
  ['text/html', 'text/html', PEM],
  [JSON_TYPE, JSON_TYPE, JSON_TYPE],
  ['JSON with a parameter', 'application/json; charset=utf-8', JSON_TYPE],
  ['JSON first', 'application/json, text/plain, */*', JSON_TYPE],
])('an ott enrollment that accepts %s', async (_what, accept, type) => {
  const attempt = await methods.ott()
  const headers = accept === undefined ? { accept: '' } : { accept }
  const answer = await send('ott', 'enroll', attempt, { headers })
  expect([answer.status, answer.type]).toEqual([200, type])
  const pem = type === PEM ? String(answer.body.data) : (answer.body.data as { cert: string }).cert
  expect(pem.match(/BEGIN CERTIFICATE/g)?.length).toBe(type === PEM ? 1 : 2)
})

test('the token of an ott enrollment under another method is answered with JSON, under the type of PEM', async () => {
  const attempt = await methods.ott()
  const answer = await send('updb', 'enroll', attempt, { headers: { accept: '*/*' } })
  expect([answer.status, answer.type]).toEqual([200, PEM])
  expect(JSON.parse(String(answer.body.data))).toEqual({
    data: { cert: expect.stringMatching(/^-----BEGIN/) },
    meta: {},
  })
})

test.each(['ottca', 'updb', 'ca', 'erott', 'trott'] as const)(
  '%s answers JSON whatever is accepted',
  async (method) => {
    const answer = await send(method, 'enroll', await methods[method](), { headers: { accept: '*/*' } })
    expect([answer.status, answer.type]).toEqual([200, JSON_TYPE])
  },
)

test.each(['ottca', 'ca'] as const)('%s needs neither a body nor a content type', async (method) => {
  const attempt = await methods[method]()
  expect(outcomeOf(await send(method, 'enroll', { ...attempt, body: undefined }))).toBe('200 ok')
  const other = await methods[method]()
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' }
  expect(outcomeOf(await send(method, 'enroll', { ...other, body: undefined }, { headers }))).toBe('200 ok')
})

test('ca needs no body at its path either', async () => {
  const { certificate } = await methods.ca()
  using client = openClient(server, api, certificate)
  expect(outcomeOf(await client.call('POST', '/enroll/ca'))).toBe('200 ok')
})

test.each(['ott', 'updb', 'erott', 'trott'] as const)(
  '%s without a body is refused, and its token stays valid',
  async (method) => {
    const attempt = await methods[method]()
    const answer = await send(method, 'enroll', { ...attempt, body: undefined })
    expect(outcomeOf(answer)).toBe('400 INVALID_CONTENT_TYPE')
    expect(outcomeOf(await send(method, 'enroll', attempt))).toBe('200 ok')
  },
)

test.each([
  ['application/pkcs10', 'INVALID_CONTENT_TYPE'],
  ['application/xml', 'COULD_NOT_VALIDATE'],
  ['application/json', 'COULD_NOT_PARSE_BODY'],
])('a request of type %s is refused, and its token stays valid', async (type, code) => {
  const attempt = await methods.ott()
  const answer = await send('ott', 'enroll', attempt, { headers: { 'content-type': type } })
  expect(outcomeOf(answer)).toBe(`400 ${code}`)
  const pem = await send('ott', 'enroll', attempt, { headers: { 'content-type': `${PEM}; charset=utf-8` } })
  expect(outcomeOf(pem)).toBe('200 ok')
})

interface EnrollmentJwt {
  readonly kid: string
  readonly signed: string
  readonly signature: Buffer
}
async function newJwt(): Promise<EnrollmentJwt> {
  const { id } = await methods.ott()
  const { enrollment } = await admin.request<{ enrollment: { ott: { jwt: string } } }>(
    'GET',
    `/identities/${id}`,
  )
  const [header = '', claims = '', signature = ''] = enrollment.ott.jwt.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }
  return { kid, signed: `${header}.${claims}`, signature: Buffer.from(signature, 'base64url') }
}
async function keyOf(kid: string) {
  const answer = (await anonymous.call('GET', '/enroll/jwks')).body as unknown as { keys: JsonWebKey[] }
  expect(answer.keys.map((key) => key.kid)).toEqual([kid])
  const jwk = answer.keys.find((key) => key.kid === kid)
  expect(Object.keys(jwk ?? {}).sort()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use'])
  return createPublicKey({ key: jwk ?? {}, format: 'jwk' })
}
interface Proof {
  readonly algorithm: string
  readonly caPool: string
  readonly kid: string
  readonly signature: string
}
const challenge = (keyId: string, nonce: string) =>
  anonymous.call('POST', '/enroll/challenge', { keyId, nonce })

test('a client verifies its token by the published keys, and learns by a challenge which authorities to trust', async () => {
  const { kid, signed, signature } = await newJwt()
  const key = await keyOf(kid)
  expect(verify('sha256', Buffer.from(signed), key, signature)).toBe(true)

  const nonce = randomUUID()
  const answer = await challenge(kid, nonce)
  const proof = answer.body as unknown as Proof
  expect([answer.status, proof.algorithm, proof.kid]).toEqual([200, 'RS256', kid])
  const proves = (text: string) =>
    verify('sha256', Buffer.from(text), key, Buffer.from(proof.signature, 'base64url'))
  expect([proves(nonce), proves(randomUUID())]).toEqual([true, false])

  const certificate = await peerTrusting(proof.caPool)
  expect(certificate.publicKey.equals(key)).toBe(true)
  expect(certificate.fingerprint.replaceAll(':', '').toLowerCase()).toBe(kid)
})

/** The certificate of a gateway, to a client that trusts only these authorities. */
function peerTrusting(ca: string): Promise<X509Certificate> {
  const port = Number(network.address.split(':').at(-1))
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw))
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

test.each([
  ['an unknown key', { keyId: 'nothing', nonce: randomUUID() }, 'keyId'],
  ['no key', { nonce: randomUUID() }, 'keyId'],
  ['a nonce that is no UUID', { nonce: 'eyJhbGciOiJSUzI1NiJ9.e30' }, 'nonce'],
  ['a nonce with a line break', { nonce: `${randomUUID()}\n` }, 'nonce'],
  ['no nonce', {}, 'nonce'],
])('a challenge with %s is refused', async (_what, sent, field) => {
  const keyId = field === 'keyId' ? {} : { keyId: (await newJwt()).kid }
  const answer = await anonymous.call('POST', '/enroll/challenge', { ...keyId, ...sent })
  expect(outcomeOf(answer)).toBe('400 COULD_NOT_VALIDATE')
  expect(answer.body.error?.cause).toMatchObject({ field })
})

const AT_ONCE = 250
const LANES = 16

/** In order, a few at a time. */
async function eachOf<T, R>(items: readonly T[], work: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const entries = items.entries()
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      for (const [at, item] of entries) results[at] = await work(item, at)
    }),
  )
  return results
}

test('each of 250 concurrent enrollments succeeds or gets a time to try again, and none is half done', async () => {
  const attempts = await eachOf(Array.from({ length: AT_ONCE }), () => methods.ott())
  const answers = await Promise.all(
    attempts.map((attempt, at) => send('ott', at % 2 === 0 ? 'enroll' : 'typed', attempt)),
  )
  for (const { status, retryAfter = 0 } of answers)
    expect(status === 200 || (status === 429 && retryAfter >= 1)).toBe(true)

  const stateOf = async ({ id }: Attempt): Promise<object> => ({
    authenticators: (await admin.request<object[]>('GET', `/identities/${id}/authenticators`)).length,
    tokens: (await admin.request<{ token: string }[]>('GET', `/identities/${id}/enrollments`)).map(
      ({ token }) => token,
    ),
  })
  const done = { authenticators: 1, tokens: [] }
  const expected = attempts.map(({ token }, at) =>
    answers[at]?.status === 200 ? done : { authenticators: 0, tokens: [token] },
  )
  await expect.poll(() => eachOf(attempts, stateOf), { timeout: 30_000 }).toEqual(expected)

  const refused = attempts.filter((_, at) => answers[at]?.status === 429)
  const repeated = await eachOf(refused, (attempt) => send('ott', 'typed', attempt))
  expect(repeated.filter(({ status }) => status !== 200)).toEqual([])
})
