import { once } from 'node:events'
import { type Change, CREDENTIALS, type CredentialsPushed, type Position } from '@overlay/rpc'
import { openProjection, type WatchOptions } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { codeAt } from '../src/domain/second-factor.js'
import type { Credentials } from '../src/store/credential-changes.js'
import { storeRouterIdentity } from '../src/store/router-identities.js'
import {
  keepAccessToken,
  removeOldRevocations,
  removeUnusedTokens,
} from '../src/store/session-credentials.js'
import { as, bytes, login, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

const log = pino({ level: 'silent' })
const reports = new EventTarget()
/** A bus on which the tests report what routers have got. */
const bus = {
  connected: () => true,
  subscribe(_subject: string, handler: (message: unknown, subject: string) => void) {
    const listener = (event: Event) => handler((event as CustomEvent).detail, '')
    reports.addEventListener('report', listener)
    return { [Symbol.dispose]: () => reports.removeEventListener('report', listener) }
  },
}
const report = (message: CredentialsPushed) =>
  void reports.dispatchEvent(new CustomEvent('report', { detail: message }))

let identity: TestIdentity
let one: Replica
let two: Replica
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ bus })
  two = await identity.replica()
})
afterAll(() => identity[Symbol.asyncDispose]())

/** Follows as replicas of sessions do, at another replica than the one that writes. */
async function follow(kinds = [CREDENTIALS, 'api-sessions']) {
  const sessions = new Map<string, Credentials>()
  const heard = new EventTarget()
  const apply = (changes: readonly Change[]) => {
    for (const { id, kind, json } of changes) {
      if (json.length === 0) sessions.delete(id)
      else if (kind === CREDENTIALS) sessions.set(id, JSON.parse(json.toString()))
    }
    heard.dispatchEvent(new Event('change'))
  }
  const source = {
    schema: 'identity',
    watch: (after: Position, signal: AbortSignal, options: WatchOptions) =>
      two.changes.watch({ ...options, after, kinds: [...options.kinds] }, { ...system(), signal }),
    load: (kinds: readonly string[], signal: AbortSignal) =>
      two.changes.load({ kinds: [...kinds] }, { ...system(), signal }),
    pull: (after: Position, signal: AbortSignal, kinds: readonly string[]) =>
      two.changes.pull({ after, gatherMs: 0, kinds: [...kinds] }, { ...system(), signal }),
    row: async () => Buffer.alloc(0),
  }
  const memory = {
    name: 'test',
    kinds,
    loadedKinds: [CREDENTIALS],
    apply,
    load: () => ({ add: apply, end: () => undefined }),
  }
  const projection = await openProjection(source, memory, { log })
  return {
    sessions,
    /** Waits for the credentials that the condition describes. */
    async until(id: string, condition: (credentials: Credentials | undefined) => boolean) {
      while (!condition(sessions.get(id))) await once(heard, 'change')
      return sessions.get(id)
    },
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}

async function person(name: string) {
  const { id: identityId } = await one.entities.create(
    { kind: 'identities', json: bytes({ name, type: 'Default', isAdmin: false }) },
    system(),
  )
  const proof = { method: 'updb', identityId, username: name, password: 'right-one' }
  await one.entities.create({ kind: 'authenticators', json: bytes(proof) }, system())
  const enter = () => one.identity.authenticate(login({ username: name, password: 'right-one' }), system())
  return { identityId, enter }
}

const exists = (credentials: Credentials | undefined): boolean => credentials !== undefined
const has = (fingerprint: string) => (credentials: Credentials | undefined) =>
  [
    ...(credentials?.fingerprints ?? []),
    ...(credentials?.expiring ?? []).map((one) => one.fingerprint),
  ].includes(fingerprint)

test('followers that name the kind get the token of a login, and no other row has it', async () => {
  await using feed = await follow()
  const { identityId, enter } = await person('alice')
  const { id, token } = await enter()
  expect(await feed.until(id, exists)).toEqual({
    id,
    token,
    accessTokens: [],
    identityId,
    fingerprints: [],
    expiring: [],
  })
  const { rows } = await one.db.query(sql`
    select from change, audit where change::text || audit::text like ${`%${token}%`}`)
  expect(rows).toEqual([])
})

test('a login is loaded by a follower that starts later', async () => {
  const { enter } = await person('early')
  const { id, token } = await enter()
  await using feed = await follow()
  expect(await feed.until(id, exists)).toMatchObject({ token })
})

test('followers of all kinds get no credentials', async () => {
  const after = await two.changeLog.head()
  await using feed = await follow()
  const { enter } = await person('unseen')
  const { id } = await enter()
  await feed.until(id, exists)
  const { changes } = await two.changes.pull({ after, gatherMs: 0, kinds: [] }, system())
  expect(changes.map(({ kind }) => kind)).not.toContain(CREDENTIALS)
  expect(changes.length).toBeGreaterThan(0)
})

test('a session has credentials once it is fully authenticated, until it ends', async () => {
  await using feed = await follow()
  const { identityId, enter } = await person('protected')
  const first = await enter()
  const context = as({ identityId, apiSessionId: first.id })
  await one.identity.startMfa({}, context)
  const { provisioningUrl } = await one.identity.getMfa({}, context)
  const secret = new URL(provisioningUrl).searchParams.get('secret') ?? ''
  const step = Math.floor(Date.now() / 30_000)
  await one.identity.verifyMfa({ code: codeAt(secret, step - 1) }, context)

  const second = await enter()
  const later = await (await person('later')).enter()
  await feed.until(later.id, exists) // all before it has arrived
  expect(feed.sessions.has(second.id)).toBe(false)
  await one.identity.passMfa({ code: codeAt(secret, step) }, as({ identityId, apiSessionId: second.id }))
  await feed.until(second.id, exists)

  await one.entities.delete({ kind: 'api-sessions', id: second.id }, system())
  await feed.until(second.id, (credentials) => !credentials)
})

test('the fingerprints of a session follow its identity, its own certificates and their extensions', async () => {
  await using feed = await follow()
  const { identityId, enter } = await person('certified')
  const { id } = await enter()
  await feed.until(id, exists)
  const { db } = one
  await db.query(sql`
    insert into authenticator (id, method, identity_id, fingerprint)
    values ('certificate', 'cert', ${identityId}, 'first')`)
  await feed.until(id, has('first'))
  await db.query(sql`update authenticator set unverified_fingerprint = 'extended' where id = 'certificate'`)
  expect((await feed.until(id, has('extended')))?.fingerprints).toEqual(['first', 'extended'])
  await db.query(sql`
    update authenticator set fingerprint = unverified_fingerprint, unverified_fingerprint = null
     where id = 'certificate'`)
  await feed.until(id, (credentials) => !has('first')(credentials))
  await db.query(sql`
    insert into api_session_certificate (id, api_session_id, subject, fingerprint, certificate, valid_from, valid_to)
    values ('over', ${id}, '', 'over', '', now(), now()), ('own', ${id}, '', 'own', '', now(), '2100-01-01')`)
  const { fingerprints, expiring } = (await feed.until(id, has('own'))) ?? {}
  expect(fingerprints).toEqual(['extended'])
  expect(expiring).toEqual([{ fingerprint: 'own', validToMs: Date.UTC(2100, 0, 1) }])
  await db.query(sql`delete from api_session_certificate where id = 'own'`)
  await feed.until(id, (credentials) => !has('own')(credentials))
  await db.query(sql`delete from authenticator where id = 'certificate'`)
  await feed.until(id, (credentials) => !has('extended')(credentials))
})

test('a second factor that a policy demands takes the credentials of its sessions', async () => {
  await using feed = await follow()
  const { identityId, enter } = await person('demanded')
  const { id } = await enter()
  await feed.until(id, exists)
  await one.db.query(sql`
    insert into auth_policy
    select 'strict', 'strict', p.primary_cert_allowed, p.primary_cert_allow_expired_certs, p.primary_ext_jwt_allowed,
           '{}', true, 0, 0, 5, false, false, false, null, false
      from auth_policy p where id = 'default'`)
  await one.db.query(sql`update identity set auth_policy_id = 'strict' where id = ${identityId}`)
  await one.db.query(sql`update auth_policy set secondary_require_totp = true where id = 'strict'`)
  await feed.until(id, (credentials) => !credentials)
})

/** An API session whose client presents access tokens. */
async function bearerSession(identityId: string): Promise<string> {
  const id = newId('cuid')
  await one.db.query(sql`
    insert into api_session (id, token, token_digest, identity_id, authenticator_id, ip_address, client_id, expires_at)
    values (${id}, ${id}, ${Buffer.from(id)}, ${identityId}, '', '', 'native', '2100-01-01')`)
  return id
}
const hour = 3_600_000
const keep = (apiSessionId: string, token: string, expiresAt = new Date(Date.now() + hour)) =>
  one.db.transaction(undefined, (tx) => keepAccessToken(tx, { apiSessionId, token, expiresAt }))
const tokensOf = (credentials: Credentials | undefined) =>
  credentials?.accessTokens.map(({ token }) => token) ?? []

test('followers get the access tokens of a session in place of its own, until it ends', async () => {
  await using feed = await follow()
  const { identityId } = await person('bearer')
  const id = await bearerSession(identityId)
  await keep(id, 'eyJ.first')
  await keep(id, 'eyJ.second')
  const both = await feed.until(id, (credentials) => tokensOf(credentials).length === 2)
  expect(both).toMatchObject({ token: null, identityId })
  expect(tokensOf(both)).toEqual(['eyJ.first', 'eyJ.second'])
  const { rows } = await one.db.query(sql`
    select from change, audit where change::text || audit::text like '%eyJ.%'`)
  expect(rows).toEqual([])
  await one.entities.delete({ kind: 'identities', id: identityId }, system())
  await feed.until(id, (credentials) => tokensOf(credentials).length === 0)
})

const untilMsOf = (credentials: Credentials | undefined) => credentials?.revokedUntilMs
const isRevoked = (credentials: Credentials | undefined) => untilMsOf(credentials) !== undefined

test('a session that ends before its access tokens is revoked until the last of them has expired', async () => {
  await using feed = await follow()
  const { identityId } = await person('revoked')
  const expiresAt = new Date(Date.now() + 2 * hour)
  const [early, idle, old] = [await bearerSession(identityId), await bearerSession(identityId), newId('cuid')]
  await keep(early, 'eyJ.longest', expiresAt)
  await keep(early, 'eyJ.newest')
  await keep(idle, 'eyJ.expired', new Date(Date.now() - 1))
  await one.identity.disableIdentity({ id: identityId, durationMinutes: 0 }, system())
  expect(await feed.until(early, isRevoked)).toEqual({
    id: early,
    token: null,
    accessTokens: [],
    identityId,
    fingerprints: [],
    expiring: [],
    revokedUntilMs: expiresAt.getTime(),
  })

  await one.db.query(sql`
    insert into revoked_api_session values (${old}, ${identityId}, now()), ('later', ${identityId}, '2100-01-01')`)
  await removeOldRevocations(one.db)
  const { rows } = await one.db.query(
    sql`select id from revoked_api_session where id = any(${[early, idle, old]})`,
  )
  expect(rows).toEqual([{ id: early }])
  await using later = await follow()
  expect(untilMsOf(await later.until(early, isRevoked))).toBe(expiresAt.getTime())
  expect([later.sessions.has(idle), later.sessions.has('later')]).toEqual([false, true])
})

test('a session whose access tokens count no longer is revoked until it is complete again', async () => {
  await using feed = await follow()
  const { identityId } = await person('incomplete')
  const id = await bearerSession(identityId)
  await keep(id, 'eyJ.paused')
  await feed.until(id, (credentials) => tokensOf(credentials).length === 1)
  const complete = (is: boolean) =>
    one.db.query(sql`update api_session set is_mfa_required = true, is_mfa_complete = ${is} where id = ${id}`)
  await complete(false)
  expect(tokensOf(await feed.until(id, isRevoked))).toEqual([])
  await complete(true)
  expect(tokensOf(await feed.until(id, (credentials) => !isRevoked(credentials)))).toEqual(['eyJ.paused'])
})

test('an access token stays until an hour after its end, or after routers have reported it last', async () => {
  await using feed = await follow()
  const { identityId } = await person('refreshing')
  const id = await bearerSession(identityId)
  const ago = (hours: number) => new Date(Date.now() - hours * hour)
  const report = (ids: string[]) =>
    one.identity.markActivity({ apiSessionIds: [], atMs: [], accessTokenIds: ids }, system())
  const until = (token: string) => feed.until(id, (credentials) => tokensOf(credentials).includes(token))

  await keep(id, 'used', ago(2))
  const first = (await until('used'))?.accessTokens[0]?.id ?? ''
  await report([first, '999999999'])
  await keep(id, 'unused', ago(2))
  await keep(id, 'expired', ago(0.5))
  expect(tokensOf(await until('expired'))).toEqual(['used', 'unused', 'expired'])
  await removeUnusedTokens(one.db)
  await keep(id, 'last')
  expect(tokensOf(await until('last'))).toEqual(['used', 'expired', 'last'])

  for (let n = 0; n < 20; n++) await keep(id, `${n}`)
  await report([first])
  const many = tokensOf(await until('19'))
  expect(many).toEqual(['used', ...Array.from({ length: 15 }, (_, n) => `${n + 5}`)])
})

test('credentials that a replica has left behind are passed on by another', async () => {
  await using feed = await follow()
  const { identityId } = await person('orphan')
  await one.db.query(sql`
    insert into api_session (id, token, token_digest, identity_id, authenticator_id, ip_address)
    values ('left', 'left', 'left', ${identityId}, '', '')`)
  await feed.until('left', exists)
})

test('a login is answered when the routers have got its credentials, or a second later', async () => {
  const { enter } = await person('routed')
  await enter() // waits for no replica
  const position = await one.changeLog.head()
  const far = { ...position, number: position.number + 1_000_000 }
  let isAnswered = false
  report({ replica: 'sessions 1', position, routers: 3 })
  const entering = enter().then(() => {
    isAnswered = true
  })
  await untilLogged(position)
  report({ replica: 'sessions 2', position: far, routers: 3 })
  expect(isAnswered).toBe(false)
  report({ replica: 'sessions 1', position: far, routers: 3 })
  await entering

  report({ replica: 'sessions 1', position, routers: 3 })
  await enter() // too late
  await enter() // does not wait for a late one
  report({ replica: 'sessions 1', position, routers: 0 })
  report({ replica: 'sessions 2', position, routers: 0 })
})

/** Until the change log has a change after the position. */
async function untilLogged({ number }: Position): Promise<void> {
  for (;;) if ((await one.changeLog.head()).number > number) return
}

test('followers get the token of a router, whatever its auth policy requires', async () => {
  await using feed = await follow()
  await one.db.transaction(undefined, (tx) => storeRouterIdentity(tx, 'router', 'router'))
  const request = { routerId: 'router', configTypes: [], envInfo: Buffer.alloc(0), sdkInfo: Buffer.alloc(0) }
  const { session } = await one.identity.openRouterSession(request, system())
  await feed.until(session?.id ?? '', exists)
  await one.db.query(sql`update auth_policy set secondary_require_totp = true`)
  try {
    const { enter } = await person('after the router')
    await enter() // its change is logged with or after those of the auth policy
    await using later = await follow()
    expect(await later.until(session?.id ?? '', exists)).toMatchObject({ identityId: 'router' })
    expect(feed.sessions.has(session?.id ?? '')).toBe(true)
  } finally {
    await one.db.query(sql`update auth_policy set secondary_require_totp = false`)
  }
})
