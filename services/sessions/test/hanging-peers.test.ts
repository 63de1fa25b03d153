import { randomUUID } from 'node:crypto'
import { type Context, type Methods, ownContext, type PolicyServiceService } from '@overlay/rpc'
import { noBus, type Source } from '@overlay/store/change-log'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { openService, type ServiceOptions } from '../src/service.js'
import { log, startStore } from './store.js'

const timeline = randomUUID()
const position = { timeline, number: 5 }
const message = { upto: position, after: position, changes: [], more: false, ageMs: 0 }

/** An owner without rows and without changes. */
const quiet = (schema: string): Source => ({
  schema,
  async *load() {
    yield message
  },
  async *watch(_after, signal) {
    while (!signal.aborted) {
      yield message
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    }
  },
  pull: async () => message,
  row: async () => Buffer.alloc(0),
})

function gate() {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

/** Fails when the signal is aborted, as a call does. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const nothing = async () => ({ json: [] })
const unused = () => Promise.reject(new Error('not used here'))

const context = (): Context => ({
  ...ownContext(AbortSignal.timeout(30_000)),
  caller: {
    identityId: 'alice',
    identityName: 'Alice',
    apiSessionId: 'as1',
    isAdmin: false,
    configTypes: [],
  },
  positions: { identity: position, policy: position },
})

test('a policy that does not answer holds up no write, also while a load of it takes effect', async () => {
  await using store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  await db.query(sql`insert into router (id, name, is_edge) values ('r', 'r', true)`)
  await db.query(sql`
    insert into terminator (id, service_id, router_id, binding, address)
    values ('t', 'deleted', 'r', 'transport', 'tcp:localhost:1')`)
  const asked = gate()
  const answers = gate()
  const policy: Partial<Methods<PolicyServiceService>> = {
    authorize: async () => ({
      routerIds: [],
      policyIds: ['p'],
      serviceName: 'wiki',
      positions: { identity: position, policy: position },
      lasts: false,
      postureAtRouters: false,
      others: [],
    }),
  }
  const options: ServiceOptions = {
    changeLog,
    log,
    identity: {
      source: quiet('identity'),
      entities: { view: nothing },
      changes: { head: unused },
      calls: {
        checkApiSession: unused,
        markActivity: unused,
        reportConnections: unused,
        openRouterSession: unused,
        reserveRouterName: unused,
        releaseRouterName: unused,
      },
    },
    policy: {
      source: quiet('policy'),
      entities: {
        async view({ ids }, { signal }) {
          asked.open()
          await Promise.race([answers.opened, aborted(signal)])
          return { json: ids.map(() => Buffer.alloc(0)) }
        },
        list: unused,
      },
      changes: { head: unused },
      calls: policy as Methods<PolicyServiceService>,
    },
    pki: {
      source: quiet('pki'),
      entities: { view: nothing },
      calls: {
        issueRouterCertificates: unused,
        getSessionKey: unused,
        getTokenKeys: unused,
        getTrustBundle: unused,
      },
    },
    waitForFollowers: async (written) => written,
    bus: noBus,
  }
  await using service = await openService(options)
  await asked.opened
  while ((await db.query(sql`select from followed where timeline is not null`)).rowCount !== 2);
  const { json } = await service.sessions.createSession(
    {
      serviceId: 'wiki',
      type: 'Dial',
      tags: Buffer.alloc(0),
      apiSessionAt: undefined,
      hasAccessToken: false,
    },
    context(),
  )
  expect(JSON.parse(json.toString())).toMatchObject({ serviceId: 'wiki' })
  expect((await db.query(sql`select from terminator`)).rowCount).toBe(1)
  answers.open()
  while ((await db.query(sql`select from terminator`)).rowCount);
})
