import { isDeleted } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import { reapSessions } from '../src/jobs/housekeeping.js'
import { credentialLoader } from '../src/store/credential-changes.js'
import { as, bytes, changesAfter, type Replica, system, type TestIdentity, testIdentity } from './identity.js'
import { type Answer, claimsOf, client, logIn, person, policy, refreshed } from './oidc.js'

let identity: TestIdentity
let one: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

interface Member {
  readonly identityId: string
  readonly apiSessionId: string
  readonly authenticatorId: string
  readonly answer: Answer
}

async function member(name: string, members: object = {}): Promise<Member> {
  const identityId = await person(one, name, members)
  const answer = await logIn(one, name)
  const apiSessionId = String(claimsOf(answer.access_token).z_asid)
  const { rows } = await one.db.query<{ id: string }>(
    sql`select authenticator_id as id from api_session where id = ${apiSessionId}`,
  )
  return { identityId, answer, apiSessionId, authenticatorId: rows[0]?.id ?? '' }
}

/** Until when routers refuse the access tokens of the session. Undefined: they do not. */
async function revokedUntil(id: string): Promise<number | undefined> {
  for await (const { json } of credentialLoader(one.db)([id]))
    return (json as { readonly revokedUntilMs?: number }).revokedUntilMs
  return undefined
}

const authenticator = ({ authenticatorId: id }: Member) => ({ kind: 'authenticators', id })
const noLimits = { idleMs: 0, lifetimeMs: 0 }

test.each<[string, (someone: Member) => Promise<unknown>]>([
  [
    'an access token is revoked',
    ({ answer: { access_token: token } }) => one.oidc.revokeToken({ clientId: 'native', token }, client),
  ],
  [
    'a refresh token is revoked',
    ({ answer: { refresh_token: token } }) => one.oidc.revokeToken({ clientId: 'native', token }, client),
  ],
  [
    'the client logs out',
    ({ answer: { id_token: idTokenHint } }) => one.oidc.endSession({ idTokenHint, clientId: '' }, client),
  ],
  [
    'it is deleted',
    ({ identityId, apiSessionId: id }) =>
      one.entities.delete({ kind: 'api-sessions', id }, as({ identityId, apiSessionId: id })),
  ],
  [
    'its identity is disabled',
    ({ identityId: id }) => one.identity.disableIdentity({ id, durationMinutes: 1 }, system()),
  ],
  [
    'its identity is deleted',
    ({ identityId: id }) => one.entities.delete({ kind: 'identities', id }, system()),
  ],
  [
    'its password is replaced',
    (someone) =>
      one.entities.update(
        { ref: authenticator(someone), json: bytes({ password: 'other-one' }), mask: ['password'] },
        system(),
      ),
  ],
  ['its password is removed', (someone) => one.entities.delete(authenticator(someone), system())],
  [
    'a refresh token is used after it was replaced',
    async ({ answer: { refresh_token } }) => {
      await refreshed(one, refresh_token)
      await one.db.query(
        sql`update refresh_token set consumed_at = now() - interval '1 hour' where consumed_at is not null`,
      )
      await refreshed(one, refresh_token)
    },
  ],
  [
    'its identity gets an auth policy without passwords',
    async ({ identityId: id }) => {
      const authPolicyId = await policy(one, `strict ${id}`, {})
      await one.db.query(sql`update auth_policy set primary_updb_allowed = false where id = ${authPolicyId}`)
      await one.entities.update(
        { ref: { kind: 'identities', id }, json: bytes({ authPolicyId }), mask: ['authPolicyId'] },
        system(),
      )
    },
  ],
  [
    'its auth policy forbids passwords',
    async ({ identityId }) => {
      const id = await policy(one, `stricter ${identityId}`, {})
      await one.db.query(sql`update identity set auth_policy_id = ${id} where id = ${identityId}`)
      await one.db.query(
        sql`update auth_policy set primary_updb_allowed = false, ends_sessions = true where id = ${id}`,
      )
      await reapSessions(one.changeLog, noLimits, 100)
    },
  ],
])('an API session of access tokens ends for followers and routers when %s', async (how, act) => {
  const someone = await member(how)
  const before = await one.changeLog.head()
  expect(await revokedUntil(someone.apiSessionId)).toBeUndefined()
  await act(someone)
  const changes = await changesAfter(one.changeLog, before)
  const ended = changes.filter((change) => change.kind === 'api-sessions' && isDeleted(change))
  expect(ended.map(({ id }) => id)).toEqual([someone.apiSessionId])
  expect(await revokedUntil(someone.apiSessionId)).toBeGreaterThanOrEqual(
    Number(claimsOf(someone.answer.access_token).exp) * 1000,
  )
})

test('an API session that must pass a second factor again is revoked until it has', async () => {
  const authPolicyId = await policy(one, 'lax', {})
  const { identityId, apiSessionId } = await member('guarded', { authPolicyId })
  const caller = as({ identityId, apiSessionId })
  await one.identity.startMfa({}, caller)
  const { provisioningUrl } = await one.identity.getMfa({}, caller)
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  const code = (from: number) => ({ code: codeAt(secret, Math.floor(Date.now() / 30_000) + from) })
  await one.identity.verifyMfa(code(-1), caller)
  await one.db.query(sql`update auth_policy set secondary_require_totp = true where id = ${authPolicyId}`)
  expect(await revokedUntil(apiSessionId)).toBeUndefined()
  await one.identity.removeMfaOf({ kind: 'identities', id: identityId }, system())
  expect(await revokedUntil(apiSessionId)).toBeGreaterThan(Date.now())
})
