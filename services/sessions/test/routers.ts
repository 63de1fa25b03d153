import { controller, edgeRouter, session, terminator, transitRouter } from '@overlay/model'
import type { WaitForFollowers } from '@overlay/platform/change-log'
import { entityService, kind } from '@overlay/platform/kind-store'
import type { Database } from '@overlay/platform/postgres'
import { type Context, ownContext, type Perspective } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { edgeRouterSeams } from '../src/kinds/edge-router.js'
import { entities } from '../src/kinds/entities.js'
import { terminatorSeams } from '../src/kinds/terminator.js'
import { transitRouterSeams } from '../src/kinds/transit-router.js'
import { sessionsService } from '../src/methods/sessions-service.js'
import { startStore } from './store.js'

export const context: Context = ownContext(new AbortController().signal)

const settled: WaitForFollowers = async (written) => written

const pki = {
  view: async ({ kind: asked, ids }: { kind: string; ids: readonly string[] }) => ({
    json: ids.map(() => Buffer.from(JSON.stringify({ enrollmentToken: `of ${asked}` }))),
  }),
}

type Row = Readonly<Record<string, unknown>>

export interface Routers extends AsyncDisposable {
  readonly db: Database
  /** What policy calls its services. */
  readonly services: Map<string, string>
  readonly confirmed: () => number
  create(kindName: string, body: object): Promise<string>
  update(kindName: string, id: string, body: object): Promise<unknown>
  get(kindName: string, id: string): Promise<Row>
  list(kindName: string, filter: string, perspective?: Perspective): Promise<readonly Row[]>
  remove(kindName: string, id: string): Promise<unknown>
  count(): Promise<Readonly<Record<string, number>>>
  readonly service: ReturnType<typeof sessionsService>
  /** Change rows so far: kind, and whether the row is there. */
  told(): Promise<readonly string[]>
}

export const asClient: Perspective = {
  asIdentity: '',
  configTypes: [],
  hasConfigTypes: false,
  policyType: '',
  asClient: true,
}

/** The kinds of this service on a database of their own, with the others made up. */
export async function startRouters(): Promise<Routers> {
  const store = await startStore()
  const { changeLog } = store
  const { db } = changeLog
  const services = new Map<string, string>()
  let confirmed = 0
  const names = async (kindName: string, ids: readonly string[]) =>
    new Map(
      ids.flatMap((id) =>
        kindName === 'services' && services.has(id) ? [[id, services.get(id) ?? '']] : [],
      ),
    )
  const kinds = [
    kind(controller),
    kind(edgeRouter, edgeRouterSeams(pki)),
    kind(session),
    kind(terminator, terminatorSeams),
    kind(transitRouter, transitRouterSeams(pki)),
  ]
  const policyFollowed = { catchUp: async () => void confirmed++ }
  const uniform = entities(entityService({ changeLog, kinds, names }), { db, policyFollowed, settled })
  const json = (body: object) => Buffer.from(JSON.stringify(body))
  const query = { sort: '', limit: '', offset: '', roleFilter: [], roleSemantic: '', after: Buffer.alloc(0) }
  const create = () => Promise.reject(new Error('no sessions are made here'))
  return {
    db,
    services,
    confirmed: () => confirmed,
    create: async (kindName, body) =>
      (await uniform.create({ kind: kindName, json: json(body) }, context)).id,
    update: (kindName, id, body) =>
      uniform.update({ ref: { kind: kindName, id }, json: json(body), mask: Object.keys(body) }, context),
    get: async (kindName, id) => {
      const found = await uniform.get({ ref: { kind: kindName, id }, perspective: undefined }, context)
      return JSON.parse(found.json.toString())
    },
    list: async (kindName, filter, perspective) => {
      const request = { kind: kindName, query: { ...query, filter }, within: undefined, perspective }
      return JSON.parse((await uniform.list(request, context)).rows.toString())
    },
    remove: (kindName, id) => uniform.delete({ kind: kindName, id }, context),
    count: async () => (await uniform.count({}, context)).rows,
    service: sessionsService({ changeLog, create, settled }),
    told: async () => {
      const { rows } = await db.query<{ told: string }>(
        sql`select kind || case when entity is null then ' gone' else '' end as told from change order by number`,
      )
      return rows.map(({ told }) => told)
    },
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}
