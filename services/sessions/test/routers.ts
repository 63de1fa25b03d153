import { session } from '@overlay/model'
import { type Context, ownContext, type Perspective } from '@overlay/rpc'
import type { ChangeLog, WaitForFollowers } from '@overlay/store/change-log'
import { entityService, kind } from '@overlay/store/kind-store'
import type { Database } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { NO_FEATURES } from '../src/domain/router-features.js'
import { controllers } from '../src/kinds/controller.js'
import { edgeRouters } from '../src/kinds/edge-router.js'
import { terminators } from '../src/kinds/terminator.js'
import { transitRouters } from '../src/kinds/transit-router.js'
import { routerMethods } from '../src/methods/router-methods.js'
import type { PresenceRow } from '../src/store/presence.js'
import { freeNames } from './router-names.js'
import { log, startStore } from './store.js'

export const context: Context = ownContext(new AbortController().signal)

export const certificates = { ownerOf: async () => undefined, replace: async () => undefined }
export const waitForFollowers: WaitForFollowers = async (written) => written

const pki = {
  view: async ({ kind, ids }: { kind: string; ids: readonly string[] }) => ({
    json: ids.map(() => Buffer.from(JSON.stringify({ enrollmentToken: `of ${kind}` }))),
  }),
}

type Row = Readonly<Record<string, unknown>>

export interface Routers extends AsyncDisposable {
  readonly db: Database
  readonly changeLog: ChangeLog
  /** The names of services of policy. */
  readonly services: Map<string, string>
  /** How often a request has waited for the changes of policy. */
  readonly caughtUp: () => number
  create(kindName: string, body: object): Promise<string>
  update(kindName: string, id: string, body: object): Promise<unknown>
  get(kindName: string, id: string): Promise<Row>
  list(kindName: string, filter: string, perspective?: Perspective): Promise<readonly Row[]>
  remove(kindName: string, id: string): Promise<unknown>
  count(): Promise<Readonly<Record<string, number>>>
  readonly methods: ReturnType<typeof routerMethods>
  /** Change rows so far: kind, and whether the row is there. */
  changes(): Promise<readonly string[]>
}

export const asClient: Perspective = {
  asIdentity: '',
  configTypes: [],
  hasConfigTypes: false,
  policyType: '',
  asClient: true,
}

/** The row of a router that is connected and synchronized. */
export const presenceRow = (routerId: string): PresenceRow => ({
  routerId,
  hostname: '',
  supportedProtocols: {},
  syncStatus: 'SYNC_DONE',
  versionInfo: { arch: '', buildDate: '', os: '', revision: '', version: '' },
  linkListeners: '',
  connectedAt: new Date().toISOString(),
  features: NO_FEATURES,
})

/** The kinds of this service on a database of their own, with fake other services. */
export async function startRouters(): Promise<Routers> {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  const services = new Map<string, string>()
  let caughtUp = 0
  const names = async (kindName: string, ids: readonly string[]) =>
    new Map(
      ids.flatMap((id) =>
        kindName === 'services' && services.has(id) ? [[id, services.get(id) ?? '']] : [],
      ),
    )
  const routerDeps = { db, identity: freeNames, pki, waitForFollowers }
  const kinds = [
    controllers,
    edgeRouters(routerDeps),
    kind(session, { view: async () => [] }),
    terminators({ catchUp: async () => void caughtUp++ }),
    transitRouters(routerDeps),
  ]
  const entities = entityService({ changeLog, kinds, names })
  const json = (body: object) => Buffer.from(JSON.stringify(body))
  const query = { sort: '', limit: '', offset: '', roleFilter: [], roleSemantic: '', after: Buffer.alloc(0) }
  return {
    db,
    services,
    changeLog,
    caughtUp: () => caughtUp,
    create: async (kindName, body) =>
      (await entities.create({ kind: kindName, json: json(body) }, context)).id,
    update: (kindName, id, body) =>
      entities.update({ ref: { kind: kindName, id }, json: json(body), mask: Object.keys(body) }, context),
    get: async (kindName, id) => {
      const found = await entities.get({ ref: { kind: kindName, id }, perspective: undefined }, context)
      return JSON.parse(found.json.toString())
    },
    list: async (kindName, filter, perspective) => {
      const request = { kind: kindName, query: { ...query, filter }, within: undefined, perspective }
      return JSON.parse((await entities.list(request, context)).rows.toString())
    },
    remove: (kindName, id) => entities.delete({ kind: kindName, id }, context),
    count: async () => (await entities.count({}, context)).rows,
    methods: routerMethods({ changeLog, certificates, waitForFollowers, log }),
    changes: async () => {
      const { rows } = await db.query<{ change: string }>(
        sql`select kind || case when entity is null then ' gone' else '' end as change from change order by number`,
      )
      return rows.map(({ change }) => change)
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}
