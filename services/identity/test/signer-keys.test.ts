import { BlockList } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { certify } from './certificates.js'
import {
  keyPair,
  loginByToken,
  type Provider,
  person,
  provider,
  publishingSigner,
  token,
} from './external-tokens.js'
import { bytes, lockWaits, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let two: Replica
let idp: Provider
let sub: string
const lines: { readonly [fact: string]: unknown }[] = []
beforeAll(async () => {
  identity = await testIdentity()
  const networks = new BlockList()
  networks.addSubnet('127.0.0.0', 8, 'ipv4')
  const tokens = { isHttpAllowed: true, networks }
  const onRefusal = (facts: object) => void lines.push({ ...facts })
  one = await identity.replica({ tokens, onRefusal, onWarning: onRefusal })
  two = await identity.replica({ tokens, onRefusal })
  sub = await person(one)
})
afterAll(() => identity[Symbol.asyncDispose]())
beforeEach(async () => {
  idp = await provider()
  return () => idp[Symbol.asyncDispose]()
})

/** A signer whose provider publishes one key. */
async function published() {
  const [signer, key] = [await publishingSigner(one, idp.endpoint), await keyPair()]
  idp.keys = [key.jwk]
  const by = (pair: Awaited<ReturnType<typeof keyPair>>) => token({ ...signer, ...pair }, { sub })
  return { signer, key, by }
}

async function expectRefusal(reason: string, replica: Replica, presented: string): Promise<void> {
  await expect(loginByToken(replica, presented)).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  expect(lines.findLast((line) => 'reason' in line)).toMatchObject({ reason })
}

const MINUTE_MS = 60_000

/** As if the keys had been fetched, and fetches tried, so much earlier. */
const age = (signerId: string, ms: number) =>
  one.db.query(sql`
    update signer_key_set
       set fetched_at = fetched_at - ${ms} * interval '1 millisecond',
           failed_at = failed_at - ${ms} * interval '1 millisecond'
     where signer_id = ${signerId}`)

test('one fetch serves all replicas, and later logins', async () => {
  const { by, key } = await published()
  const logins = [one, two, one, two].map(async (replica) => loginByToken(replica, await by(key)))
  await Promise.all(logins)
  await loginByToken(two, await by(key))
  expect(idp.requests).toEqual(['/keys'])
})

test('a key that another replica has fetched in the meantime is not fetched again', async () => {
  const { signer, by, key } = await published()
  await loginByToken(one, await by(key))
  const replaceKeys = (db: Pick<Tx, 'query'>, keys: string) =>
    db.query(sql`update signer_key_set set keys = ${keys}::jsonb where signer_id = ${signer.id}`)
  const { rows } = await one.db.query<{ keys: string }>(
    sql`select keys::text as keys from signer_key_set where signer_id = ${signer.id}`,
  )
  await replaceKeys(one.db, '{}')
  let login: Promise<unknown> | undefined
  await one.db.transaction(undefined, async (tx) => {
    await replaceKeys(tx, rows[0]?.keys ?? '')
    login = loginByToken(two, await by(key)) // sees no key, and waits for this transaction
    await expect.poll(() => lockWaits(one.db, 'signer_key_set')).toBe(1)
  })
  await login
  expect(idp.requests).toEqual(['/keys'])
})

test('a rotated key is fetched when a token names it, and the former one is dropped', async () => {
  const { by, key } = await published()
  await loginByToken(one, await by(key))
  const next = await keyPair()
  idp.keys = [next.jwk]
  await loginByToken(two, await by(next))
  await expectRefusal('unknown key', one, await by(key))
})

test('an unknown key causes a fetch after a pause only, however many are named', async () => {
  const { signer, by, key } = await published()
  await loginByToken(one, await by(key))
  await expectRefusal('unknown key', one, await by(await keyPair('__proto__')))
  expect(idp.requests).toHaveLength(2)
  await age(signer.id, -MINUTE_MS) // the pause is not over
  for (const kid of ['__proto__', 'constructor', 'a', 'b'])
    await expectRefusal('unknown key', two, await by(await keyPair(kid)))
  expect(idp.requests).toHaveLength(2)
  await age(signer.id, MINUTE_MS + 1000)
  await expectRefusal('unknown key', two, await by(await keyPair()))
  expect(idp.requests).toHaveLength(3)
})

test('a key that is published after its first use is accepted soon', async () => {
  const { signer, by, key } = await published()
  const next = await keyPair()
  await expectRefusal('unknown key', one, await by(next))
  idp.keys = [key.jwk, next.jwk]
  await age(signer.id, 1000)
  await loginByToken(one, await by(next))
  expect(idp.requests).toHaveLength(2)
})

test('a provider that is away does not break keys that are known, for a day', async () => {
  const { signer, by, key } = await published()
  await loginByToken(one, await by(key))
  idp.answer = (_, response) => response.writeHead(503).end()
  await age(signer.id, 23 * 60 * MINUTE_MS)
  await loginByToken(two, await by(key))
  await age(signer.id, 60 * MINUTE_MS)
  await expectRefusal('keys not available', one, await by(key))
})

test('a provider that comes back is asked again', async () => {
  const { signer, by, key } = await published()
  const { answer } = idp
  idp.answer = (_, response) => response.writeHead(503).end()
  await expectRefusal('keys not available', one, await by(key))
  idp.answer = answer
  await age(signer.id, MINUTE_MS)
  await loginByToken(two, await by(key))
})

test('keys that have become old are fetched before they are used', async () => {
  const { signer, by, key } = await published()
  await loginByToken(one, await by(key))
  idp.keys = [(await keyPair()).jwk]
  await age(signer.id, 16 * MINUTE_MS)
  await expectRefusal('unknown key', one, await by(key))
})

test('another address of a signer takes effect at once', async () => {
  const { signer, by, key } = await published()
  await loginByToken(one, await by(key))
  await using moved = await provider()
  const next = await keyPair()
  moved.keys = [next.jwk]
  const body = { jwksEndpoint: moved.endpoint }
  await one.entities.update(
    { ref: { kind: 'external-jwt-signers', id: signer.id }, json: bytes(body), mask: Object.keys(body) },
    system(),
  )
  await expectRefusal('unknown key', two, await by(key))
  await loginByToken(two, await by(next))
})

test.each(['base64', 'base64url'] as const)('certificates of keys in %s are read', async (encoding) => {
  const { certificate, keys } = await certify({ name: 'key' })
  const signer = await publishingSigner(one, idp.endpoint)
  idp.keys = [{ kid: 'certified', kty: 'EC', use: 'sig', x5c: [certificate.raw.toString(encoding)] }]
  await loginByToken(one, await token({ ...signer, kid: 'certified', privateKey: keys.privateKey }, { sub }))
})

const longDocument = (): string => JSON.stringify({ keys: idp.keys }) + ' '.repeat(300 * 1024)

test('a set without a usable key is logged with the reasons', async () => {
  const { by, key } = await published()
  idp.keys = [
    { ...key.jwk, alg: 'ES384' },
    { ...key.jwk, use: 'enc' },
  ]
  await expectRefusal('unknown key', one, await by(key))
  expect(lines.findLast((line) => 'unusable' in line)).toMatchObject({
    kids: [],
    endpoint: idp.endpoint,
    unusable: [
      { kid: key.kid, reason: expect.stringContaining('alg') },
      { kid: key.kid, reason: expect.stringContaining('use') },
    ],
  })
})

test.each([
  ['compressed', (text: string) => gzipSync(text), { 'content-encoding': 'gzip' }],
  ['that begins with a byte order mark', (text: string) => Buffer.from(`\uFEFF${text}`), {}],
] as const)('a document %s is read', async (_what, encode, headers) => {
  const { by, key } = await published()
  idp.answer = (_, response) =>
    response.writeHead(200, headers).end(encode(JSON.stringify({ keys: idp.keys })))
  await loginByToken(one, await by(key))
})

test.each([
  [
    'a redirect',
    (_: unknown, response) =>
      response.writeHead(302, { location: idp.endpoint }).end(JSON.stringify({ keys: idp.keys })),
  ],
  ['a long document', (_: unknown, response) => response.end(longDocument())],
  [
    'a document that is long only when it is decompressed',
    (_: unknown, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(longDocument())),
  ],
  [
    'a document that is compressed in another way',
    (_: unknown, response) =>
      response.writeHead(200, { 'content-encoding': 'br' }).end(JSON.stringify({ keys: idp.keys })),
  ],
  [
    'half of a compressed document',
    (_: unknown, response) =>
      response
        .writeHead(200, { 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify({ keys: idp.keys })).subarray(0, 40)),
  ],
  [
    'a document that ends early',
    (_: unknown, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('{"keys":[')
      setImmediate(() => response.destroy())
    },
  ],
  ['no JSON', (_: unknown, response) => response.end('<html>')],
  ['an end without an answer', (request) => request.socket.destroy()],
] satisfies [string, Provider['answer']][])('%s is no set of keys', async (_what, answer) => {
  const { by, key } = await published()
  idp.answer = answer
  await expectRefusal('keys not available', one, await by(key))
  expect(idp.requests).toHaveLength(1)
})

test.each([
  ['plain http', { isHttpAllowed: false }, (port: string) => `http://127.0.0.1:${port}/`],
  ['a loopback address', { networks: undefined }, (port: string) => `http://127.0.0.1:${port}/`],
  ['a name of a loopback address', { networks: undefined }, (port: string) => `http://localhost:${port}/`],
  ['an address in other notation', { networks: undefined }, (port: string) => `http://2130706433:${port}/`],
  ['an embedded address', { networks: undefined }, (port: string) => `http://[::ffff:127.0.0.1]:${port}/`],
] as const)('%s is not connected to unless the settings allow it', async (_what, rules, endpointOf) => {
  const strict = await identity.replica({ tokens: { isHttpAllowed: true, ...rules } })
  const key = await keyPair()
  const signer = await publishingSigner(strict, endpointOf(new URL(idp.endpoint).port))
  const presented = await token({ ...signer, ...key }, { sub })
  await expect(loginByToken(strict, presented)).rejects.toMatchObject({ code: 'INVALID_AUTH' })
  expect(idp.requests).toEqual([])
})
