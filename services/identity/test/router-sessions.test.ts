import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { reapSessions } from '../src/jobs/housekeeping.js'
import { storeRouterIdentity } from '../src/store/router-identities.js'
import { endSessions } from '../src/store/session-ends.js'
import { type Replica, system, testIdentity } from './identity.js'

const request = {
  routerId: 'r1',
  configTypes: [] as string[],
  envInfo: Buffer.alloc(0),
  sdkInfo: Buffer.alloc(0),
}

async function startRouter() {
  const started = await testIdentity()
  const replica = await started.replica()
  await replica.db.transaction(undefined, (tx) => storeRouterIdentity(tx, 'r1', 'router one'))
  await replica.db.query(sql`
    insert into known_config_type (id, name) values ('t1', 'intercept.v1'), ('t2', 'host.v1')`)
  return { started, replica, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() }
}

const open = async ({ identity }: Replica, members: Partial<typeof request> = {}) => {
  const { session, hosting } = await identity.openRouterSession({ ...request, ...members }, system())
  if (!session) throw new Error('no session')
  return { ...session, hosting: JSON.parse(hosting.toString()) }
}

test('a router has one API session, from all replicas', async () => {
  await using router = await startRouter()
  const other = await router.started.replica()
  const opened = await Promise.all([router.replica, other, router.replica].map((replica) => open(replica)))
  expect(new Set(opened.map(({ id, token }) => `${id} ${token}`)).size).toBe(1)
  expect(opened[0]).toMatchObject({
    ...{ identityId: 'r1', identityName: 'router one', isAdmin: false, isPartial: false },
    ...{ configTypes: ['all'], timeoutSeconds: 1800 },
  })
  const { rows } = await router.replica.db.query(sql`select method, identity_id from api_session`)
  expect(rows).toEqual([{ method: 'router', identity_id: 'r1' }])
})

test('an ended API session of a router is replaced by a new one', async () => {
  await using router = await startRouter()
  const { id } = await open(router.replica)
  await router.replica.changeLog.write(system(), async (tx) => ({
    result: undefined,
    changes: await endSessions(tx, sql`id = ${id}`),
  }))
  expect((await open(router.replica)).id).not.toBe(id)
})

test('the API session of a router outlasts its disconnections, however long', async () => {
  await using router = await startRouter()
  const { id } = await open(router.replica)
  const { db, changeLog } = router.replica
  await db.query(
    sql`update api_session set last_activity_at = now() - interval '1 day', created_at = now() - interval '1 day'`,
  )
  await reapSessions(changeLog, { idleMs: 1000, lifetimeMs: 1000 }, 100)
  expect((await open(router.replica)).id).toBe(id)
})

test('a router may change its config types, by id or name', async () => {
  await using router = await startRouter()
  const { id } = await open(router.replica, { configTypes: ['t1', 'host.v1', 'unknown'] })
  expect(await open(router.replica)).toMatchObject({ id, configTypes: ['t1', 't2'] })
  expect(await open(router.replica, { configTypes: ['host.v1'] })).toMatchObject({ id, configTypes: ['t2'] })
})

test('a second factor that the auth policy requires does not concern routers', async () => {
  await using router = await startRouter()
  await router.replica.db.query(sql`update auth_policy set secondary_require_totp = true`)
  expect(await open(router.replica)).toMatchObject({ isPartial: false })
})

test('an answer says how the router hosts services', async () => {
  await using router = await startRouter()
  await router.replica.db.query(sql`
    update identity set app_data = '{"site":"north"}', default_hosting_cost = 7, default_hosting_precedence = 'required',
                        service_hosting_costs = '{"s1":5}', service_hosting_precedences = '{"s1":"failed"}'
     where id = 'r1'`)
  expect((await open(router.replica)).hosting).toEqual({
    appData: { site: 'north' },
    defaultHostingCost: 7,
    defaultHostingPrecedence: 'required',
    serviceHostingCosts: { s1: 5 },
    serviceHostingPrecedences: { s1: 'failed' },
  })
})

test('what a router reports of itself is stored with its identity', async () => {
  await using router = await startRouter()
  const json = (text: string) => Buffer.from(text)
  await open(router.replica, { envInfo: json('{"os":"linux"}'), sdkInfo: json('{"appId":"ziti-router"}') })
  const { rows } = await router.replica.db.query(sql`select env_info, sdk_info from identity where id = 'r1'`)
  expect(rows).toEqual([{ env_info: { os: 'linux' }, sdk_info: { appId: 'ziti-router' } }])
})

test.each([
  ['that does not exist', sql`delete from identity where id = 'r1'`],
  ['of another type', sql`update identity set type = 'Default' where id = 'r1'`],
  [
    'that is disabled',
    sql`update identity set disabled_at = now(), disabled_until = '9999-12-31' where id = 'r1'`,
  ],
])('there is no API session for a router with an identity %s', async (_what, change) => {
  await using router = await startRouter()
  await router.replica.db.query(change)
  const failure = await open(router.replica).catch((err: unknown) => err)
  expect(failure instanceof Fault && failure.code).toBe('NOT_FOUND')
})
