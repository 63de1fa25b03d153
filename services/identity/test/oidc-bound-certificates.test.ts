import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { authority, certify, type Holder } from './certificates.js'
import { bytes, type Replica, system, type TestIdentity, testIdentity } from './identity.js'
import {
  type Answer,
  claimsOf,
  client,
  codeRequest,
  exchanged,
  logIn,
  person,
  policy,
  present,
  refreshed,
  start,
  tokens,
} from './oidc.js'

let identity: TestIdentity
let one: Replica
let signer: Holder
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
  signer = await authority('signer')
  identity.world.trusted = [signer.certificate.toString()]
})
afterAll(() => identity[Symbol.asyncDispose]())

/** An identity with a password, and with a certificate. */
async function holderOf(name: string, members: object = {}) {
  const identityId = await person(one, name, members)
  const { certificate } = await certify({ name, issuer: signer })
  const { id } = await one.entities.create(
    {
      kind: 'authenticators',
      json: bytes({ method: 'cert', identityId, certPem: certificate.toString() }),
    },
    system(),
  )
  return { identityId, authenticatorId: id, certificate, fingerprint: fingerprintOf(certificate) }
}

async function logInWith({ certificate }: Pick<Holder, 'certificate'>): Promise<Answer> {
  const flow = await start(one)
  await present(one, flow, { method: 'cert', peerCertificates: [certificate.raw, signer.certificate.raw] })
  const { code } = await one.oidc.finishLogin({ id: flow.id, browser: '' }, client)
  return tokens(one, codeRequest(flow, code))
}

const bindingsOf = (token: string) => {
  const { z_cfs, z_cae } = claimsOf(token)
  return { z_cfs, z_cae }
}

test('tokens of a login by certificate are bound to it and its chain', async () => {
  const holder = await holderOf('certified')
  const answer = await logInWith(holder)
  const bound = { z_cfs: [holder.fingerprint, fingerprintOf(signer.certificate)], z_cae: true }
  expect(bindingsOf(answer.access_token)).toEqual(bound)
  expect(bindingsOf(answer.refresh_token)).toEqual(bound)
  expect(bindingsOf((await exchanged(one, answer.refresh_token)).access_token)).toEqual(bound)
  expect(bindingsOf((await refreshed(one, answer.refresh_token)).access_token)).toEqual(bound)
})

test('tokens allow expired certificates only where the auth policy does', async () => {
  const authPolicyId = await policy(one, 'strict', {})
  const answer = await logInWith(await holderOf('strict', { authPolicyId }))
  expect(claimsOf(answer.access_token).z_cae).toBeUndefined()
  await one.db.query(
    sql`update auth_policy set primary_cert_allow_expired_certs = true where id = ${authPolicyId}`,
  )
  expect(claimsOf((await exchanged(one, answer.refresh_token)).access_token).z_cae).toBe(true)
})

test('the next token is bound to the certificates that identity and session have then', async () => {
  const { authenticatorId, fingerprint } = await holderOf('extending')
  const answer = await logIn(one, 'extending')
  expect(bindingsOf(answer.access_token)).toEqual({ z_cfs: [fingerprint], z_cae: undefined })
  expect(claimsOf(answer.refresh_token).z_cfs).toBeNull()
  const apiSessionId = String(claimsOf(answer.access_token).z_asid)
  const next = async () => claimsOf((await exchanged(one, answer.refresh_token)).access_token).z_cfs

  await one.db.query(sql`
    update authenticator set unverified_fingerprint = 'extended' where id = ${authenticatorId}`)
  expect(await next()).toEqual([fingerprint, 'extended'])
  await one.db.query(sql`
    insert into api_session_certificate (id, api_session_id, subject, fingerprint, certificate, valid_from, valid_to)
    values ('own', ${apiSessionId}, '', 'own', '', now(), '2100-01-01'),
           ('over', ${apiSessionId}, '', 'over', '', now(), now())`)
  await one.db.query(sql`
    update authenticator set fingerprint = unverified_fingerprint, unverified_fingerprint = null
     where id = ${authenticatorId}`)
  expect(await next()).toEqual(['extended', 'own'])
  await one.db.query(sql`delete from authenticator where id = ${authenticatorId}`)
  await one.db.query(sql`delete from api_session_certificate where id = 'own'`)
  expect(await next()).toBeNull()
})

test('a certificate that is removed is no longer named, nor is its chain', async () => {
  const holder = await holderOf('replacing')
  const answer = await logInWith(holder)
  await one.db.query(sql`update authenticator set fingerprint = 'other' where id = ${holder.authenticatorId}`)
  await one.db.query(sql`delete from api_session_certificate where fingerprint = ${holder.fingerprint}`)
  expect(bindingsOf((await exchanged(one, answer.refresh_token)).access_token)).toMatchObject({
    z_cfs: ['other'],
  })
})
