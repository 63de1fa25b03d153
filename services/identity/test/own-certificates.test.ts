import type { IssuedCertificate } from '@overlay/rpc'
import { noQuery } from '@overlay/store/kind-store'
import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { authority, certify, type Holder } from './certificates.js'
import {
  as,
  bytes,
  login,
  parsed,
  type Replica,
  system,
  type TestIdentity,
  testIdentity,
} from './identity.js'

let identity: TestIdentity
let one: Replica
let signer: Holder
/** What was signed last. */
let signed: Holder
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  signer = await authority('signer')
  identity.world.trusted = [pemOf(signer)]
})
beforeEach(() => {
  identity.world.sign = async () => {
    signed = await leaf()
    return issued(signed)
  }
})
afterAll(() => identity[Symbol.asyncDispose]())

const kind = 'current-api-session/certificates'
let count = 0
const pemOf = ({ certificate }: Holder): string => certificate.toString()
const leaf = (): Promise<Holder> => certify({ name: `leaf ${++count}`, issuer: signer })
const issued = (holder: Holder): IssuedCertificate => {
  const certPem = pemOf(holder)
  return { certPem, chainPem: certPem + pemOf(signer), caPem: `\n${pemOf(signer)}` }
}
const printOf = ({ certificate }: Holder): string => fingerprintOf(certificate)
const enter = async (holder: Holder) => {
  const request = login({ method: 'cert', peerCertificates: [holder.certificate.raw] })
  const { id, identityId } = await one.identity.authenticate(request, system())
  return as({ identityId, apiSessionId: id })
}
const csrPem = 'a request'
const fault = (code: string) => expect.objectContaining({ code })
const unauthorized = fault('UNAUTHORIZED')
const refused = fault('CAN_NOT_UPDATE_AUTHENTICATOR')

/** Somebody with a certificate of the network, logged in with it. */
async function member(more: object = {}) {
  const body = { name: `person ${++count}`, type: 'Default', isAdmin: false }
  const { id: identityId } = await one.entities.create({ kind: 'identities', json: bytes(body) }, system())
  const holder = await leaf()
  const { authenticatorId: id } = await one.identity.addAuthenticator(
    {
      identityId,
      enrollmentId: `enrollment ${++count}`,
      certPem: pemOf(holder),
      isIssuedByNetwork: true,
      caId: '',
      peerCertificates: [],
      username: '',
      password: '',
      ...more,
    },
    system(),
  )
  const context = await enter(holder)
  const extend = (by = holder, authenticatorId = id) =>
    one.identity.extendOwnAuthenticator(
      { id: authenticatorId, csrPem, peerCertificates: [by.certificate.raw] },
      context,
    )
  const verify = (certPem: string, authenticatorId = id) =>
    one.identity.verifyOwnAuthenticator({ id: authenticatorId, certPem }, context)
  return { identityId, id, holder, context, extend, verify }
}

const passwordOf = async (identityId: string): Promise<string> => {
  const body = { method: 'updb', identityId, username: `name ${++count}`, password: 'secret-1' }
  return (await one.entities.create({ kind: 'authenticators', json: bytes(body) }, system())).id
}

const listed = async (context = system()): Promise<Record<string, unknown>[]> => {
  const query = { ...noQuery, limit: '-1' }
  const page = await one.entities.list({ kind, query, within: undefined, perspective: undefined }, context)
  return parsed(page.rows)
}
const printsIn = async (context = system()) => (await listed(context)).map(({ fingerprint }) => fingerprint)
const get = async (id: string, context = system()): Promise<Record<string, unknown>> =>
  parsed((await one.entities.get({ ref: { kind, id }, perspective: undefined }, context)).json)

test('a new certificate counts only when it was sent back; then it replaces the old one and ends its other sessions', async () => {
  const { holder, context, extend, verify } = await member()
  const other = await enter(holder)
  const { certPem, caPem } = await extend()
  expect([certPem, caPem]).toEqual([pemOf(signed), `\n${pemOf(signer)}`])
  await expect(enter(signed)).rejects.toEqual(fault('INVALID_AUTH'))
  await enter(holder)

  await verify(certPem)
  await expect(enter(holder)).rejects.toEqual(fault('INVALID_AUTH'))
  expect(await printsIn(context)).toEqual([printOf(signed)])
  expect(await printsIn(other)).toEqual([])
  const check = ({ caller }: typeof context) =>
    one.identity.checkApiSession({ id: caller.apiSessionId }, system())
  await check(context)
  await expect(check(other)).rejects.toEqual(unauthorized)
  expect(await printsIn(await enter(signed))).toEqual([printOf(signed)])
  await expect(verify(certPem)).rejects.toEqual(refused)
})

test('a second extension takes the place of the one that is pending', async () => {
  const { extend, verify } = await member()
  const first = await extend()
  const second = await extend()
  await expect(verify(first.certPem)).rejects.toEqual(fault('INVALID_CLIENT_CERT'))
  await verify(second.certPem)
  await enter(signed)
})

test.each([
  ['nothing', () => ''],
  ['no certificate', () => '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
  ['two certificates', () => pemOf(signed) + pemOf(signed)],
  ['another certificate', () => pemOf(signer)],
])('%s does not verify, and the pending certificate stays', async (_what, sent) => {
  const { extend, verify } = await member()
  const { certPem } = await extend()
  await expect(verify(sent())).rejects.toEqual(fault('INVALID_CLIENT_CERT'))
  await verify(certPem)
})

test('no certificate, or that of an authority, is refused before all other checks', async () => {
  const { extend, context } = await member()
  const request = { id: 'nothing', csrPem, peerCertificates: [] }
  await expect(one.identity.extendOwnAuthenticator(request, context)).rejects.toEqual(unauthorized)
  await expect(extend(signer, 'nothing')).rejects.toEqual(unauthorized)
})

test('only a certificate of the network can be extended, by its identity, with its key', async () => {
  const alice = await member()
  const bob = await member()
  const foreign = await member({ isIssuedByNetwork: false })
  const password = await passwordOf(alice.identityId)
  const asked = (call: (id: string) => Promise<unknown>, id: string) => expect(call(id)).rejects
  for (const call of [
    (id: string) => alice.extend(alice.holder, id),
    (id: string) => alice.verify(pemOf(alice.holder), id),
  ]) {
    await asked(call, 'nothing').toEqual(fault('NOT_FOUND'))
    await asked(call, password).toEqual(refused)
    await asked(call, bob.id).toEqual(unauthorized)
  }
  await expect(foreign.extend()).rejects.toEqual(refused)
  await expect(alice.extend(bob.holder)).rejects.toEqual(unauthorized)
  await expect(alice.verify(pemOf(alice.holder))).rejects.toEqual(refused)
})

test('what has been extended meanwhile is not changed by a request with the old certificate', async () => {
  const { id, extend, verify } = await member()
  const { certPem } = await extend()
  const first = signed
  identity.world.sign = async () => {
    await verify(certPem) // while the other waits for its signature
    return issued(await leaf())
  }
  await expect(extend()).rejects.toEqual(fault('NOT_FOUND'))
  const { rows } = await one.db.query(
    sql`select fingerprint, unverified_fingerprint from authenticator where id = ${id}`,
  )
  expect(rows).toEqual([{ fingerprint: printOf(first), unverified_fingerprint: null }])
})

test('a session gets certificates, sees only its own, and takes them along', async () => {
  const { context, holder } = await member()
  const other = await enter(holder)
  const { id, chainPem, caPem } = await one.identity.createSessionCertificate({ csrPem }, context)
  expect([chainPem, caPem]).toEqual([issued(signed).chainPem, issued(signed).caPem])

  const { validFrom, validTo, subject } = signed.certificate
  expect(await get(id, context)).toEqual({
    _links: { self: { href: `./current-api-session/certificates/${id}` } },
    id,
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    tags: {},
    certificate: chainPem,
    fingerprint: printOf(signed),
    subject,
    validFrom: new Date(validFrom).toISOString(),
    validTo: new Date(validTo).toISOString(),
  })
  expect((await printsIn(context)).sort()).toEqual([printOf(holder), printOf(signed)].sort())
  expect(await printsIn(other)).toEqual([printOf(holder)])
  const admin = { ...other, caller: { ...other.caller, isAdmin: true } }
  expect(await printsIn(admin)).toEqual([printOf(holder)])
  await expect(get(id, admin)).rejects.toEqual(fault('NOT_FOUND'))
  await expect(one.entities.delete({ kind, id }, admin)).rejects.toEqual(fault('NOT_FOUND'))

  await one.entities.delete({ kind, id }, context)
  expect(await printsIn(context)).toEqual([printOf(holder)])
  await one.entities.delete({ kind: 'api-sessions', id: context.caller.apiSessionId }, system())
  expect(await printsIn(context)).toEqual([])
  await expect(one.identity.createSessionCertificate({ csrPem }, context)).rejects.toEqual(unauthorized)
})
