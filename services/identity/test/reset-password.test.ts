import { verify } from '@node-rs/argon2'
import { type TestDatabase, testDatabase, withClient } from '@overlay/launcher/testing'
import pino from 'pino'
import { expect, test } from 'vitest'
import { initIdentity } from '../src/init.js'
import { type ResetOptions, resetPassword } from '../src/password-command/reset-password.js'
import { hashing } from './identity.js'

const log = pino({ enabled: false })

async function openInstallation() {
  const database = await testDatabase('identity')
  const databaseUrl = database.urlOf('identity')
  await initIdentity({ databaseUrl, username: 'admin', password: 'forgotten', hashing, log })
  const options = {
    databaseUrl,
    username: 'admin',
    removeSecondFactor: false,
    allowPasswords: false,
    operator: 'ada',
    hashing,
    log,
  }
  return Object.assign(database, {
    reset: (some: Partial<ResetOptions> = {}) => resetPassword({ ...options, ...some }),
  })
}

const query = <T extends object>({ ownerUrl }: TestDatabase, text: string): Promise<T[]> =>
  withClient(ownerUrl, async (client) => {
    await client.query('set search_path = identity')
    return (await client.query<T>(text)).rows
  })

const storedHash = async (database: TestDatabase): Promise<string> =>
  (await query<{ password: string }>(database, 'select password from authenticator'))[0]?.password ?? ''

test('a new password keeps the rules of the auth policy, and the audit names the user of the machine', async () => {
  await using database = await openInstallation()
  await query(
    database,
    `update auth_policy set primary_updb_min_password_length = 40, primary_updb_require_special_char = true,
       primary_updb_require_number_char = true, primary_updb_require_mixed_case = true`,
  )
  await expect(database.reset({ password: 'too short' })).rejects.toThrow(
    'password should be at least 40 chars long',
  )
  const { password = '', ...result } = await database.reset()
  expect(password).toMatch(/^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[-_])[\w-]{40}$/)
  expect(result).toMatchObject({
    username: 'admin',
    isDefaultAdmin: true,
    endedSessions: 0,
    wasDisabled: false,
  })
  expect(await verify(await storedHash(database), password)).toBe(true)
  const [row] = await query(database, 'select * from audit order by id desc limit 1')
  expect(row).toMatchObject({
    kind: 'authenticators',
    identity_id: '',
    identity_name: 'ada',
    request_id: 'admin-password',
    before: { username: 'admin' },
    after: { username: 'admin' },
  })
  expect(JSON.stringify(row)).not.toContain(password)
})

test('it enables the administrator, ends pauses of the user name, and removes the second factor on request', async () => {
  await using database = await openInstallation()
  await query(
    database,
    `update identity set disabled_at = now();
     insert into guess (kind, account, source, settled_at) values
       ('password', sha256(convert_to('admin', 'UTF8')), '*', now() + interval '1 hour'),
       ('code', sha256(convert_to((select id from identity), 'UTF8')), '192.0.2.1', now() + interval '1 hour');
     insert into second_factor (identity_id, id, sealed, is_verified) select id, 'factor', 'x', true from identity`,
  )
  const given = await database.reset({ password: 'given-one' })
  expect(given).toMatchObject({ wasDisabled: true, hasSecondFactor: true, removedSecondFactor: false })
  expect(given.password).toBeUndefined()
  expect(await verify(await storedHash(database), 'given-one')).toBe(true)
  expect(await query(database, 'select from identity where disabled_at is not null')).toEqual([])
  expect(await query(database, 'select from guess where settled_at > now()')).toEqual([])
  expect(await database.reset({ removeSecondFactor: true })).toMatchObject({
    wasDisabled: false,
    hasSecondFactor: false,
    removedSecondFactor: true,
  })
  expect(await query(database, 'select from second_factor')).toEqual([])
})

test('an administrator without a password gets one, and only administrators do', async () => {
  await using database = await openInstallation()
  await query(
    database,
    `delete from authenticator;
     insert into identity (id, name, type, is_admin, auth_policy_id) values
       ('second', 'Second Admin', 'Default', true, 'default'), ('person', 'person', 'Default', false, 'default')`,
  )
  expect(await database.reset()).toMatchObject({ username: 'admin', isDefaultAdmin: true })
  const second = { name: 'Second Admin', username: 'admin' }
  await expect(database.reset(second)).rejects.toThrow("the user name 'admin' belongs to another identity")
  expect(await database.reset({ ...second, username: 'second' })).toMatchObject({
    username: 'second',
    isDefaultAdmin: false,
  })
  expect(await database.reset({ name: 'second' })).toMatchObject({ username: 'second' })
  await expect(database.reset({ name: 'person' })).rejects.toThrow("no administrator 'person'")
  await query(database, 'update auth_policy set primary_updb_allowed = false')
  await expect(database.reset()).rejects.toThrow('does not allow passwords')
})

test('on request the auth policy allows passwords alone, with an audit row', async () => {
  await using database = await openInstallation()
  await query(
    database,
    `insert into external_jwt_signer (id, name, issuer, audience, enabled, jwks_endpoint, claims_property, use_external_id, common_name)
     values ('s1', 'the company', 'https://idp.example', 'overlay', true, 'https://idp.example/keys', 'sub',
             false, '');
     update auth_policy set secondary_require_ext_jwt_signer = 's1'`,
  )
  expect(await database.reset()).toMatchObject({ secondSigner: 'the company' })
  await query(database, 'update auth_policy set primary_updb_allowed = false')
  expect(await database.reset({ allowPasswords: true })).toMatchObject({ changedPolicy: 'Default' })
  expect(
    await query(
      database,
      `select primary_updb_allowed as allowed, secondary_require_ext_jwt_signer as signer from auth_policy`,
    ),
  ).toEqual([{ allowed: true, signer: null }])
  const [row] = await query(
    database,
    `select * from audit where kind = 'auth-policies' order by id desc limit 1`,
  )
  expect(row).toMatchObject({ identity_name: 'ada', request_id: 'admin-password' })
  expect(await database.reset({ allowPasswords: true })).not.toHaveProperty('changedPolicy')
})

test('the login from this machine is not paused by guesses of others afterwards', async () => {
  await using database = await openInstallation()
  await database.reset()
  expect(
    await query(
      database,
      `select source from guess where kind = 'password' and succeeded_at > now() - interval '1 hour' order by source`,
    ),
  ).toEqual([{ source: '0:0:0:0::/64' }, { source: '127.0.0.1' }])
})

test('rules that no password can keep are an error', async () => {
  await using database = await openInstallation()
  await query(database, 'update auth_policy set primary_updb_min_password_length = 101')
  await expect(database.reset()).rejects.toThrow('password should be at least 101 chars long')
})
