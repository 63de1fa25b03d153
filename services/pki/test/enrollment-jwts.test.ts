import { createPublicKey, verify, X509Certificate } from 'node:crypto'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openEnrollmentIssuer } from '../src/keys/enrollment-issuer.js'
import { readKeyring } from '../src/keys/keyring.js'
import { activateKey, prepareKey } from '../src/keys/operations.js'
import { enrollmentsByToken } from '../src/store/enrollments.js'
import { context, keySecret, type Pki, startPki, tokenKeyRules } from './network.js'

let pki: Pki
beforeAll(async () => {
  pki = await startPki()
})
afterAll(() => pki[Symbol.asyncDispose]())

const jsonOf = (bytes: Uint8Array | undefined) => JSON.parse(Buffer.from(bytes ?? '').toString())
const viewOf = async (kind: string, id: string) =>
  jsonOf((await pki.entities.view({ kind, ids: [id] }, context)).json[0])
const detailOf = async (id: string) =>
  jsonOf((await pki.entities.get({ ref: { kind: 'enrollments', id }, perspective: undefined }, context)).json)

/** The JWT of an enrollment wherever it is shown. */
async function jwtsOf(id: string, ofOwner: () => Promise<string>): Promise<readonly string[]> {
  const listed = (await pki.outstanding()).find((row) => row.id === id)?.jwt
  return [String(listed), (await detailOf(id)).jwt, await ofOwner()]
}
const ofIdentity = ({ id, identityId }: { readonly id: string; readonly identityId: string }) =>
  jwtsOf(id, async () => (await viewOf('identities', identityId)).enrollment.ott.jwt)
const ofRouter = ({ id, routerId }: { readonly id: string; readonly routerId: string }) =>
  jwtsOf(id, async () => (await viewOf('transit-routers', routerId)).enrollmentJwt)

/** Whether the certificate that gateways serve now verifies it. */
async function isVerified(jwt: string): Promise<boolean> {
  const { chainPem, fingerprint } = await pki.pki.getServerCertificate({}, context)
  const [header = '', claims = '', signature = ''] = jwt.split('.')
  const { kid } = jsonOf(Buffer.from(header, 'base64url'))
  const key = createPublicKey(new X509Certificate(chainPem).publicKey.export({ type: 'spki', format: 'pem' }))
  const signed = Buffer.from(`${header}.${claims}`)
  return kid === fingerprint && verify('sha256', signed, key, Buffer.from(signature, 'base64url'))
}

async function changeServerKey(): Promise<void> {
  const deps = { changeLog: pki.changeLog, keySecret, tokenKeyRules, context }
  await prepareKey(deps, 'server')
  await activateKey(deps, 'server', { force: true })
}

test('an enrollment shows one JWT everywhere, and another one after the server key has changed', async () => {
  const [wish, router] = [await pki.wish({}), await pki.routerWish('trott')]
  const before = [...(await ofIdentity(wish)), ...(await ofRouter(router))]
  expect(new Set(before).size).toBe(2)
  expect(await Promise.all(before.map(isVerified))).toEqual(before.map(() => true))

  await changeServerKey()
  await expect.poll(() => isVerified(before[0] ?? '')).toBe(false)
  const after = [...(await ofIdentity(wish)), ...(await ofRouter(router))]
  expect(new Set(after).size).toBe(2)
  expect(await Promise.all(after.map(isVerified))).toEqual(after.map(() => true))
})

test('all replicas sign the same text', async () => {
  const wish = await pki.wish({})
  const keyring = await readKeyring(pki.changeLog.db, keySecret, new Date())
  const replica = openEnrollmentIssuer({
    address: 'api.example:1280',
    identityMinutes: 180,
    routerMinutes: 60,
    now: () => new Date(),
    keyring: async () => keyring,
  })
  const row = await enrollmentsByToken(pki.changeLog.db)(wish.token)
  const [signed] = await replica.signed(row ? [row] : [])
  expect(signed?.jwt).toBe((await ofIdentity(wish))[0])
})

test('a JWT that an earlier release has stored is not shown', async () => {
  const wish = await pki.wish({})
  await pki.changeLog.db.query(sql`update enrollment set jwt = 'stored' where id = ${wish.id}`)
  for (const jwt of await ofIdentity(wish)) expect(await isVerified(jwt)).toBe(true)
})

test('a refreshed enrollment has another JWT', async () => {
  const wish = await pki.wish({})
  const before = await ofIdentity(wish)
  await pki.pki.refreshEnrollment({ id: wish.id, expiresAtMs: Date.parse('2098-01-01T00:00:00Z') }, context)
  const after = await ofIdentity(wish)
  expect(new Set([...before, ...after]).size).toBe(2)
  expect(jsonOf(Buffer.from(after[0]?.split('.')[1] ?? '', 'base64url'))).toMatchObject({
    exp: Date.parse('2098-01-01T00:00:00Z') / 1000,
    jti: (await enrollmentsByToken(pki.changeLog.db)((await detailOf(wish.id)).token))?.token,
  })
})

test('a page of hundreds of pending enrollments has all of their JWTs', async () => {
  const wishes = await Promise.all(Array.from({ length: 300 }, () => pki.wish({})))
  const ids = wishes.map(({ identityId }) => identityId)
  const views = (await pki.entities.view({ kind: 'identities', ids }, context)).json.map(jsonOf)
  const tokens = views.map(
    ({ enrollment }) => jsonOf(Buffer.from(enrollment.ott.jwt.split('.')[1], 'base64url')).jti,
  )
  expect(tokens).toEqual(wishes.map(({ token }) => token))
})
