import { randomUUID } from 'node:crypto'
import { testDatabase } from '@overlay/launcher/testing'
import { type Context, EnrollmentWish, type EnrollRequest, Fault, ownContext } from '@overlay/rpc'
import { localSource, noBus, openChangeLog, type RowChange } from '@overlay/store/change-log'
import { noQuery } from '@overlay/store/kind-store'
import { type Database, openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import type { Owners } from '../src/enroll/enroll-method.js'
import { initPki } from '../src/init.js'
import { openService, type ServiceOptions } from '../src/service.js'

const log = pino({ level: 'silent' })
export const keySecret = 'a key secret of at least 32 characters'
const address = 'api.example:1280'
export const tokenKeyRules = { periodMs: 30 * 86_400_000, tokenMs: 86_400_000, since: undefined }
const ctrlAddress = 'ctrl.example:6262'
export const context: Context = ownContext(new AbortController().signal)

type Added = Parameters<Owners['identity']['addAuthenticator']>[0]
type Admitted = Parameters<Owners['sessions']['admitRouter']>[0]

/** A pki with its own database. The other services are fakes with a real change log; they keep the requests. */
export async function startPki(more: Partial<ServiceOptions> = {}) {
  const database = await testDatabase('identity', 'pki', 'sessions')
  const [pki, identity, sessions] = (['pki', 'identity', 'sessions'] as const).map((schema) =>
    openDatabase(database.urlOf(schema), schema, { max: 8 }),
  )
  if (!pki || !identity || !sessions) throw new Error('three databases were opened')
  await initPki({ databaseUrl: database.urlOf('pki'), keySecret, address, ctrlAddress, log })
  const statements: string[] = []
  const observing =
    (query: Database['query']): Database['query'] =>
    (statement, name) => {
      statements.push(statement.text)
      return query(statement, name)
    }
  const observed: Database = { ...pki, query: observing(pki.query) }
  const changeLog = await openChangeLog(observed, noBus, log)
  const owners = {
    identity: await openChangeLog(identity, noBus, log),
    sessions: await openChangeLog(sessions, noBus, log),
  }

  const added: Added[] = []
  const admitted: Admitted[] = []
  const expected: Parameters<ServiceOptions['expectEnrollment']>[0][] = []
  const claimed: { readonly routerId: string; readonly hosts: readonly string[] }[] = []
  const taken = new Set<string>()
  const claimFailures = new Set<string>()
  const held = new Map<string, Promise<unknown>>()
  const names = new Map<string, string>()
  const rows = new Map<string, { readonly kind: string; readonly json: object }>()
  const rowsOf = (kind: string) =>
    async function* () {
      for (const [id, row] of rows) if (row.kind === kind) yield { id, json: row.json }
    }

  const sources = {
    identity: localSource(owners.identity, {
      identities: rowsOf('identities'),
      authenticators: rowsOf('authenticators'),
    }),
    sessions: localSource(owners.sessions, {
      'edge-routers': rowsOf('edge-routers'),
      'transit-routers': rowsOf('transit-routers'),
    }),
  }
  /** Changes a row of another service. */
  const change = async (schema: 'identity' | 'sessions', kind: string, id: string, json: object | null) => {
    const rowChange: RowChange = { kind, id, before: null, after: json, payload: json }
    if (json) rows.set(id, { kind, json })
    else rows.delete(id)
    const { position } = await owners[schema].write(context, async () => ({
      result: id,
      changes: [rowChange],
    }))
    return position
  }

  const fakes: Owners = {
    identity: {
      async addAuthenticator(request) {
        const { enrollmentId } = request
        const created = !added.some((other) => other.enrollmentId === enrollmentId)
        if (created) added.push(request)
        const position = created
          ? await change('identity', 'authenticators', enrollmentId, { enrollmentId })
          : await owners.identity.head()
        return { authenticatorId: enrollmentId, created, position }
      },
    },
    sessions: {
      async claimRouterHosts({ routerId, hosts }) {
        claimed.push({ routerId, hosts })
        await held.get(routerId)
        if (claimFailures.has(routerId)) throw new Fault('UNHANDLED')
        return {
          refused: hosts.filter((host) => taken.has(host)).map((host) => ({ host, routerId: 'other' })),
        }
      },
      async admitRouter(request) {
        admitted.push(request)
        const router = rows.get(request.routerId)
        const json = { ...router?.json, isVerified: true }
        const position = await change('sessions', router?.kind ?? '', request.routerId, json)
        return { id: request.routerId, position }
      },
    },
  }

  const service = await openService({
    changeLog,
    log,
    keySecret,
    tokenKeyRules,
    address,
    ctrlAddress,
    routerNames: [],
    identityMinutes: 180,
    routerMinutes: 60,
    enrollmentsRunning: 2,
    enrollmentsWaiting: 100,
    owners: fakes,
    async expectEnrollment(request) {
      expected.push(request)
      return {}
    },
    viewers: {
      identity: viewerOf(names),
      sessions: viewerOf(names),
    },
    waitForFollowers: async (written) => written,
    sources,
    ...more,
  })

  /** The same, and waits until pki has consumed it. */
  const follow: typeof change = async (schema, kind, id, json) => {
    const position = await change(schema, kind, id, json)
    await service.changes.reach({ schema, position }, context)
    return position
  }

  const outstanding = async (): Promise<readonly Row[]> => {
    const page = await service.entities.list(listRequest, context)
    return JSON.parse(Buffer.from(page.rows).toString()) as Row[]
  }

  return {
    ...service,
    changeLog,
    /** Those outside of transactions. */
    statements,
    sources,
    owners: fakes,
    added,
    expected,
    admitted,
    /** The hosts that routers have claimed. */
    claimed,
    /** Hosts of other routers. */
    taken,
    /** Routers whose claims of hosts fail. */
    claimFailures,
    /** What claims of hosts wait for, by router. */
    held,
    names,
    change,
    follow,
    /** Begins another timeline, as a failover does, so that pki loads all rows again. */
    async newTimeline(schema: 'identity' | 'sessions') {
      await owners[schema].db.query(sql`update stream set timeline = gen_random_uuid()`)
      await owners[schema].head()
    },
    /** Adds an identity whose change requests this enrollment. */
    async wish(members: Partial<EnrollmentWish>) {
      const wish = { ...noWish, id: randomUUID(), token: randomUUID(), identityId: randomUUID(), ...members }
      await follow('identity', 'identities', wish.identityId, { name: 'alice', enrollmentWanted: wish })
      return wish
    },
    /** Adds a router that is to enroll. */
    async routerWish(method: 'erott' | 'trott', routerId: string = randomUUID()) {
      const id = randomUUID()
      const isEdge = method === 'erott'
      const router = { name: 'r1', isVerified: false, enrollmentId: id, isEdge }
      await follow('sessions', isEdge ? 'edge-routers' : 'transit-routers', routerId, router)
      return { id, routerId, token: String((await outstanding()).find((row) => row.id === id)?.token) }
    },
    enroll: (request: Partial<EnrollRequest>) => service.pki.enroll({ ...noRequest, ...request }, context),
    outstanding,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      for (const one of [changeLog, owners.identity, owners.sessions]) {
        await one[Symbol.asyncDispose]()
        await one.db[Symbol.asyncDispose]()
      }
      await database[Symbol.asyncDispose]()
    },
  }
}

export type Pki = Awaited<ReturnType<typeof startPki>>
export type Row = Readonly<Record<string, unknown>>

const viewerOf = (names: ReadonlyMap<string, string>) => ({
  view: async ({ ids }: { readonly ids: readonly string[] }) => ({
    json: ids.map((id) => {
      const name = names.get(id)
      return name ? Buffer.from(JSON.stringify({ name })) : Buffer.alloc(0)
    }),
  }),
})

export const noWish = EnrollmentWish.fromPartial({ method: 'ott' })

export const noRequest: EnrollRequest = { method: '', token: '', username: '', peerCertificates: [] }

const listRequest = {
  kind: 'enrollments',
  query: { ...noQuery, limit: '-1' },
  within: undefined,
  perspective: undefined,
}

/** The fault that a call ends with, as a client sees it. */
export async function faultOf(call: Promise<unknown>): Promise<readonly unknown[]> {
  const err = await call.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  if (!(err instanceof Fault)) throw err ?? new Error('it did not fail')
  return err.detail === undefined ? [err.code] : [err.code, err.detail]
}
