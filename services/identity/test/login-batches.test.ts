import { type Guess, guessHistory, pauseOf } from '@overlay/store/guesses'
import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { guessOf } from '../src/login/refusals.js'
import { passwordLookUps } from '../src/store/password-attempts.js'
import { authority, certify, type Holder } from './certificates.js'
import { bytes, login, type Replica, system, type TestIdentity, testIdentity } from './identity.js'

let identity: TestIdentity
let one: Replica
let signer: Holder
let statements: string[] = []
beforeAll(async () => {
  identity = await testIdentity()
  one = await identity.replica({ onStatement: (text) => statements.push(text) })
  signer = await authority('signer')
  identity.world.trusted = [signer.certificate.toString()]
})
beforeEach(() => {
  statements = []
})
afterAll(() => identity[Symbol.asyncDispose]())

let count = 0
const create = async (kind: string, body: object): Promise<string> =>
  (await one.entities.create({ kind, json: bytes(body) }, system())).id

interface Person {
  readonly id: string
  readonly username: string
  readonly holder: Holder
}

async function person(authPolicyId = 'default'): Promise<Person> {
  const name = `person ${++count}`
  const id = await create('identities', { name, type: 'Default', isAdmin: false, authPolicyId })
  const holder = await certify({ name, issuer: signer })
  const certPem = holder.certificate.toString()
  await create('authenticators', { method: 'cert', identityId: id, certPem })
  await create('authenticators', { method: 'updb', identityId: id, username: name, password: 'right-one' })
  return { id, username: name, holder }
}
/** With a certificate that has expired since it was added. */
async function expiredPerson(authPolicyId = 'default'): Promise<Person> {
  const someone = await person(authPolicyId)
  const [from, to] = [new Date(0), new Date(Date.now() - 60_000)]
  const holder = await certify({ name: someone.username, issuer: signer, from, to })
  await one.db.query(sql`
    update authenticator set fingerprint = ${fingerprintOf(holder.certificate)}
     where identity_id = ${someone.id} and method = 'cert'`)
  return { ...someone, holder }
}
const policy = (cert: object, secondary: object = { requireTotp: false }) =>
  create('auth-policies', {
    name: `policy ${++count}`,
    primary: {
      cert: { allowed: true, allowExpiredCerts: false, ...cert },
      extJwt: { allowed: true, allowedSigners: [] },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        requireSpecialChar: false,
        requireNumberChar: false,
        requireMixedCase: false,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
      },
    },
    secondary,
  })

const byCertificate = ({ holder }: Person, more: object = {}) =>
  one.identity.authenticate(
    login({ method: 'cert', peerCertificates: [holder.certificate.raw], ...more }),
    system(),
  )
const byPassword = ({ username }: Person, more: object = {}) =>
  one.identity.authenticate(login({ username, password: 'right-one', ...more }), system())

const ofLogins = (): readonly string[] =>
  statements.filter(
    (text) => /authenticator|api_session|login_|guess/.test(text) && !/credential_change/.test(text),
  )
const refused = { code: 'INVALID_AUTH' }

test('a login by a certificate is one statement, and logins that run at the same time share it', async () => {
  const people = [await person(), await person(), await person()]
  statements = []
  const sessions = await Promise.all(people.map((one) => byCertificate(one)))
  expect(sessions.map(({ identityId }) => identityId)).toEqual(people.map(({ id }) => id))
  expect(new Set(sessions.map(({ token }) => token)).size).toBe(3)
  expect(ofLogins()).toHaveLength(1)
  const [first] = sessions
  const { rows } = await one.db.query(sql`
    select s.method, c.subject, c.certificate from api_session s join api_session_certificate c on c.api_session_id = s.id
     where s.id = ${first?.id}`)
  const subject = `CN=${people[0]?.username}`
  expect(rows).toEqual([{ method: 'cert', subject, certificate: people[0]?.holder.certificate.toString() }])
})

test('a login by a password is two statements, one before the hash and one after it', async () => {
  const someone = await person()
  await byPassword(someone) // from a network that is not familiar yet
  statements = []
  expect(await byPassword(someone)).toMatchObject({ identityId: someone.id })
  expect(ofLogins()).toHaveLength(2)
})

test('a login whose identity is locked waits alone, and its end is decided by the commit', async () => {
  const [locked, ended, free] = [await person(), await person(), await person()]
  let waiting: readonly Promise<unknown>[] = []
  await one.db.transaction(undefined, async (tx) => {
    await tx.query(sql`update identity set tags = '{"a":1}' where id = ${locked.id}`)
    await tx.query(sql`update identity set disabled_at = now() where id = ${ended.id}`)
    waiting = [byCertificate(locked), byCertificate(ended)]
    for (const login of waiting) login.catch(() => undefined) // asserted below
    expect(await byCertificate(free)).toMatchObject({ identityId: free.id })
  })
  expect(await waiting[0]).toMatchObject({ identityId: locked.id })
  await expect(waiting[1]).rejects.toMatchObject(refused)
})

test('what an auth policy refuses is refused in every order', async () => {
  const allowed = await person()
  const [disallowed, expired, tolerated] = [
    await person(await policy({ allowed: false })),
    await expiredPerson(await policy({})),
    await expiredPerson(await policy({ allowExpiredCerts: true })),
  ]
  const results = await Promise.allSettled(
    [allowed, disallowed, expired, tolerated].map((one) => byCertificate(one)),
  )
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
})

test('a session has the config types of its own login, whatever others name at the same time', async () => {
  const [first, second, third] = [await person(), await person(), await person()]
  for (const id of ['type-a', 'type-b'])
    await one.db.query(sql`insert into known_config_type (id, name) values (${id}, ${`${id} by name`})`)
  const named = ({ configTypes }: { readonly configTypes: readonly string[] }) => configTypes
  const sessions = await Promise.all([
    byCertificate(first, { configTypes: ['type-b by name', 'type-a', 'unknown'] }),
    byCertificate(second, { configTypes: ['all', 'type-a'] }),
    byCertificate(third),
  ])
  expect(sessions.map(named)).toEqual([['type-b', 'type-a'], ['all'], []])
  expect(named(await byPassword(first, { configTypes: ['type-a', '\ud800'] }))).toEqual(['type-a'])
})

test('a leaf without its chain is refused before anything is noted, so that the whole chain may follow', async () => {
  const stranger = await certify({ name: 'stranger', issuer: await authority('other') })
  const presented = { method: 'cert', peerCertificates: [stranger.certificate.raw] }
  const enter = (isLeafAlone: boolean) =>
    one.identity.authenticate(login({ ...presented, isLeafAlone }), system())
  await expect(enter(true)).rejects.toMatchObject({ code: 'CHAIN_REQUIRED' })
  await expect(enter(false)).rejects.toMatchObject(refused)
  const someone = await person()
  expect(await byCertificate(someone, { isLeafAlone: true })).toMatchObject({ identityId: someone.id })
})

test('of a paused name nothing is read, in the same cases in which a guess is paused', async () => {
  const { username } = await person()
  const { kind, limits } = guessOf('password', system())
  const lookUp = passwordLookUps(one.db, { kind, limits })
  const guess: Guess & { readonly account: string } = { kind, limits, account: username, source: '10.9.9.9' }
  const debts = [0, 30, 8 * 60, 9 * 60 - 1, 9 * 60 + 1, 99 * 60 - 1, 99 * 60 + 1]
  for (const isFamiliar of [false, true])
    for (const scope of ['account-at-source', 'account', 'source'])
      for (const debt of debts) {
        const account = scope === 'source' ? sql`''::bytea` : sql`sha256(convert_to(${username}, 'UTF8'))`
        await one.db.query(sql`delete from guess`)
        await one.db.query(sql`
          insert into guess (kind, account, source, settled_at)
          values (${kind}, ${account}, ${scope === 'account' ? '*' : guess.source},
                  now() + ${debt}::float8 * interval '1 second' + interval '100 milliseconds')`)
        if (isFamiliar)
          await one.db.query(sql`
            insert into guess (kind, account, source, succeeded_at)
            values (${kind}, sha256(convert_to(${username}, 'UTF8')), ${guess.source}, now())
                on conflict (kind, account, source) do update set succeeded_at = now()`)
        const pause = pauseOf(limits, await guessHistory(one.db, guess))
        const found = await lookUp(guess)
        expect([scope, debt, isFamiliar, found.subject === undefined]).toEqual([
          scope,
          debt,
          isFamiliar,
          pause !== undefined,
        ])
        expect(found.history.isFamiliar).toBe(isFamiliar)
      }
})
