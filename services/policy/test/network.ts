import { testBus, testDatabase } from '@overlay/launcher/testing'
import {
  type ChangeLog,
  localSource,
  openBus,
  openChangeLog,
  type RowChange,
  type Source,
} from '@overlay/platform/change-log'
import { noQuery, type Viewer } from '@overlay/platform/kind-store'
import { openDatabase } from '@overlay/platform/postgres'
import { type Caller, type Context, ownContext, type Position, type Selection } from '@overlay/rpc'
import pino from 'pino'
import sql from 'sql-template-tag'
import { openService, type Service } from '../src/service.js'

export const log = pino({ level: 'silent' })

type Row = Readonly<Record<string, unknown>>

/** Another service, as far as policy follows it: its change log is real, its rows are a map. */
export interface Owner {
  readonly source: Source
  readonly viewer: Viewer
  /** Something of another kind. */
  tell(kind: string, id: string, row: Row | null): Promise<Position>
  put(id: string, row: Row): Promise<Position>
  remove(id: string): Promise<Position>
  /** Before the next answer about names leaves. */
  onceViewed(then: () => Promise<unknown>): void
}

export interface Replica extends Service {
  readonly changeLog: ChangeLog
  /** Creates and answers the id. */
  create(kind: string, row: Row, context?: Context): Promise<string>
  update(kind: string, id: string, row: Row, context?: Context): Promise<Position | undefined>
  remove(kind: string, id: string, context?: Context): Promise<Position | undefined>
  get(kind: string, id: string, context?: Context): Promise<Row>
  list(kind: string, options?: ListOptions): Promise<Row[]>
}

interface ListOptions {
  readonly context?: Context
  readonly filter?: string
  readonly within?: Selection
  readonly configTypes?: string[]
  readonly asIdentity?: string
}

interface ReplicaOptions {
  readonly identity?: Source
  /** Gets no hints: its memory lags behind other replicas until it looks. */
  readonly isDeaf?: boolean
}

export interface Network extends AsyncDisposable {
  readonly identity: Owner
  readonly sessions: Owner
  /** Of the owner of all schemas. */
  readonly databaseUrl: string
  readonly bus: Awaited<ReturnType<typeof testBus>>
  /** Cuts the connections of this name, as a failing network or server does. */
  cut(applicationName: string): Promise<void>
  replica(options?: ReplicaOptions): Promise<Replica>
}

export const as = (caller: Partial<Caller>): Context => ({
  ...ownContext(AbortSignal.timeout(10_000)),
  caller: { identityId: '', apiSessionId: '', isAdmin: false, configTypes: [], ...caller },
})
export const admin = as({ isAdmin: true })

/** Policy with what it depends on, and any number of replicas of it. */
export async function openNetwork(): Promise<Network> {
  const closing: AsyncDisposable[] = []
  const keep = <T extends AsyncDisposable>(one: T): T => {
    closing.push(one)
    return one
  }
  const database = keep(await testDatabase('identity', 'policy', 'sessions'))
  const broker = keep(await testBus())
  const bus = () => openBus(broker.url, log)

  const owner = async (schema: 'identity' | 'sessions', kind: string): Promise<Owner> => {
    const db = keep(openDatabase(database.urlOf(schema), schema))
    return ownerOf(keep(await openChangeLog(db, keep(await bus()), log)), kind)
  }
  const identity = await owner('identity', 'identities')
  const sessions = await owner('sessions', 'edge-routers')
  return {
    identity,
    sessions,
    databaseUrl: database.ownerUrl,
    bus: broker,
    async cut(applicationName) {
      await using owner = openDatabase(database.ownerUrl, 'policy')
      await owner.query(
        sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${applicationName}`,
      )
    },
    async replica({ isDeaf = false, ...sources } = {}) {
      const databaseUrl = database.urlOf('policy')
      const [open, db] = [keep(await bus()), keep(openDatabase(databaseUrl, 'policy'))]
      const own = isDeaf ? { ...open, subscribe: () => ({ [Symbol.dispose]: () => undefined }) } : open
      const changeLog = keep(await openChangeLog(db, own, log))
      const service = await openService({
        changeLog,
        databaseUrl,
        bus: own,
        log,
        sources: { identity: identity.source, sessions: sessions.source, ...sources },
        viewers: { identity: identity.viewer, sessions: sessions.viewer },
        routers: {
          describeRouters: async ({ ids }) => ({ json: ids.map(() => Buffer.from('{"isOnline":true}')) }),
        },
      })
      return keep(replicaOf(service, changeLog))
    },
    async [Symbol.asyncDispose]() {
      for (const one of closing.reverse()) await one[Symbol.asyncDispose]()
    },
  }
}

function ownerOf(changeLog: ChangeLog, kind: string): Owner {
  const rows = new Map<string, Row>()
  const tell = async (kind: string, id: string, told: Row | null): Promise<Position> => {
    const change: RowChange = { kind, id, before: null, after: told, payload: told }
    const { position } = await changeLog.write(admin, async () => ({ result: undefined, changes: [change] }))
    if (!position) throw new Error('nothing was told')
    return position
  }
  let viewed = async (): Promise<unknown> => undefined
  const write = (id: string, told: Row | null): Promise<Position> => {
    if (told) rows.set(id, told)
    else rows.delete(id)
    return tell(kind, id, told)
  }
  return {
    tell,
    source: localSource(changeLog, {
      async *[kind]() {
        for (const [id, json] of rows) yield { id, json }
      },
      async *'api-sessions'() {},
    }),
    viewer: {
      async view({ ids }) {
        const json = ids.map((id) => Buffer.from(JSON.stringify(rows.get(id)) ?? ''))
        const then = viewed
        viewed = async () => undefined
        await then()
        return { json }
      },
    },
    onceViewed(then) {
      viewed = then
    },
    put: (id, row) => write(id, { id, name: `name-${id}`, roleAttributes: null, ...row }),
    remove: (id) => write(id, null),
  }
}

const bytes = (row: Row): Buffer => Buffer.from(JSON.stringify(row))
const read = (json: Uint8Array): unknown => JSON.parse(Buffer.from(json).toString())

function replicaOf(service: Service, changeLog: ChangeLog): Replica {
  const { entities } = service
  let isOpen = true
  return {
    ...service,
    changeLog,
    create: async (kind, row, context = admin) =>
      (await entities.create({ kind, json: bytes(row) }, context)).id,
    update: async (kind, id, row, context = admin) =>
      (await entities.update({ ref: { kind, id }, json: bytes(row), mask: Object.keys(row) }, context))
        .position,
    remove: async (kind, id, context = admin) => (await entities.delete({ kind, id }, context)).position,
    get: async (kind, id, context = admin) =>
      read((await entities.get({ ref: { kind, id }, perspective: undefined }, context)).json) as Row,
    async list(kind, { context = admin, filter = '', within, configTypes, asIdentity = '' } = {}) {
      const query = { ...noQuery, filter }
      const perspective = {
        asIdentity,
        configTypes: configTypes ?? [],
        hasConfigTypes: configTypes !== undefined,
        policyType: '',
        asClient: false,
      }
      return read((await entities.list({ kind, query, within, perspective }, context)).rows) as Row[]
    },
    async [Symbol.asyncDispose]() {
      if (isOpen) await service[Symbol.asyncDispose]()
      isOpen = false
    },
  }
}
