import { testBus, testDatabase } from '@overlay/launcher/testing'
import { type Caller, type Context, ownContext, type Position, type Selection } from '@overlay/rpc'
import {
  type ChangeLog,
  localSource,
  openBus,
  openChangeLog,
  type RowChange,
  type Source,
} from '@overlay/store/change-log'
import { noQuery, type Viewer } from '@overlay/store/kind-store'
import { type Database, openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import { afterAll } from 'vitest'
import { openService, type Service } from '../src/service.js'

export const log = pino({ level: 'silent' })

type Row = Readonly<Record<string, unknown>>

/** Another service as policy sees it. Its change log is real, its rows are a map. */
export interface OtherService {
  readonly source: Source
  readonly viewer: Viewer
  /** Appends a change of any kind. */
  append(kind: string, id: string, row: Row | null): Promise<Position>
  put(id: string, row: Row): Promise<Position>
  remove(id: string): Promise<Position>
  /** Runs before the next answer about names is sent. */
  beforeNextView(work: () => Promise<unknown>): void
}

export interface Replica extends Service {
  readonly changeLog: ChangeLog
  /** Creates an entity and returns its id. */
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
  readonly sessions?: Source
  /** Receives no notifications: its memory is behind that of other replicas until it polls. */
  readonly isDeaf?: boolean
  /** The limit of one wait for other services. Without it, only a test that fails reaches the limit. */
  readonly waitMs?: number
}

export interface Network extends AsyncDisposable {
  readonly identity: OtherService
  readonly sessions: OtherService
  /** The database, as the owner of all schemas. */
  readonly owner: Database
  readonly bus: Awaited<ReturnType<typeof testBus>>
  /** Cuts the connections of this name, as a failing network or server does. */
  cut(applicationName: string): Promise<void>
  replica(options?: ReplicaOptions): Promise<Replica>
  /** The writes whose answers have waited, and for whom. */
  readonly waits: readonly { readonly id: string; readonly schemas: unknown }[]
}

export const as = (caller: Partial<Caller>): Context => ({
  ...ownContext(new AbortController().signal),
  caller: { identityId: '', identityName: '', apiSessionId: '', isAdmin: false, configTypes: [], ...caller },
})
export const admin = as({ isAdmin: true })

/** A name that no other test of the file has. */
export const newName = (): string => `n${++names}`
let names = 0

export const named = (row: object) => ({ name: newName(), ...row })

/** A network with one replica, for all tests of a file. */
export async function networkOfFile(): Promise<{ readonly network: Network; readonly policy: Replica }> {
  const network = await openNetwork()
  afterAll(() => network[Symbol.asyncDispose]())
  return { network, policy: await network.replica() }
}

/** Policy with the services on which it depends, and any number of replicas of it. */
export async function openNetwork(): Promise<Network> {
  const closing: AsyncDisposable[] = []
  const keep = <T extends AsyncDisposable>(one: T): T => {
    closing.push(one)
    return one
  }
  const database = keep(await testDatabase('identity', 'policy', 'sessions'))
  const broker = keep(await testBus())
  const waits: { readonly id: string; readonly schemas: unknown }[] = []
  const bus = () => openBus(broker.url, log)

  const other = async (schema: 'identity' | 'sessions', kind: string): Promise<OtherService> => {
    const db = keep(openDatabase(database.urlOf(schema), schema))
    return otherService(keep(await openChangeLog(db, keep(await bus()), log)), kind)
  }
  const owner = keep(openDatabase(database.ownerUrl, 'policy'))
  const identity = await other('identity', 'identities')
  const sessions = await other('sessions', 'edge-routers')
  return {
    identity,
    sessions,
    owner,
    bus: broker,
    waits,
    async cut(applicationName) {
      await owner.query(
        sql`
          select pg_terminate_backend(pid) from pg_stat_activity
           where application_name = ${applicationName} and datname = current_database()`,
      )
    },
    async replica({ isDeaf = false, waitMs = 30_000, ...sources } = {}) {
      const databaseUrl = database.urlOf('policy')
      const [open, db] = [keep(await bus()), keep(openDatabase(databaseUrl, 'policy'))]
      const own = isDeaf ? { ...open, subscribe: () => ({ [Symbol.dispose]: () => undefined }) } : open
      const changeLog = keep(await openChangeLog(db, own, log))
      const service = await openService({
        changeLog,
        databaseUrl,
        bus: own,
        log,
        waitMs,
        sources: { identity: identity.source, sessions: sessions.source, ...sources },
        viewers: { identity: identity.viewer, sessions: sessions.viewer },
        routers: {
          describeRouters: async ({ ids }) => ({ json: ids.map(() => Buffer.from('{"isOnline":true}')) }),
        },
        async waitForFollowers(written, _context, schemas) {
          waits.push({ id: written.id, schemas })
          return written
        },
      })
      return keep(replicaOf(service, changeLog))
    },
    async [Symbol.asyncDispose]() {
      for (const one of closing.reverse()) await one[Symbol.asyncDispose]()
    },
  }
}

function otherService(changeLog: ChangeLog, kind: string): OtherService {
  const rows = new Map<string, Row>()
  let beforeView = async (): Promise<unknown> => undefined
  const append = async (kind: string, id: string, payload: Row | null): Promise<Position> => {
    const change: RowChange = { kind, id, before: null, after: payload, payload }
    const { position } = await changeLog.write(admin, async () => ({ result: undefined, changes: [change] }))
    if (!position) throw new Error('the change was not appended')
    return position
  }
  return {
    append,
    source: localSource(changeLog, {
      async *[kind]() {
        for (const [id, json] of rows) yield { id, json }
      },
      async *'api-sessions'() {},
    }),
    viewer: {
      async view({ ids }) {
        const json = ids.map((id) => Buffer.from(JSON.stringify(rows.get(id)) ?? ''))
        const work = beforeView
        beforeView = async () => undefined
        await work()
        return { json }
      },
    },
    beforeNextView(work) {
      beforeView = work
    },
    put(id, values) {
      const row = { id, name: `name-${id}`, roleAttributes: null, ...values }
      rows.set(id, row)
      return append(kind, id, row)
    },
    remove(id) {
      rows.delete(id)
      return append(kind, id, null)
    },
  }
}

export const jsonOf = (row: object): Buffer => Buffer.from(JSON.stringify(row))
export const parsed = (json: Uint8Array): unknown => JSON.parse(Buffer.from(json).toString())

function replicaOf(service: Service, changeLog: ChangeLog): Replica {
  const { entities } = service
  let isOpen = true
  return {
    ...service,
    changeLog,
    create: async (kind, row, context = admin) =>
      (await entities.create({ kind, json: jsonOf(row) }, context)).id,
    update: async (kind, id, row, context = admin) =>
      (await entities.update({ ref: { kind, id }, json: jsonOf(row), mask: Object.keys(row) }, context))
        .position,
    remove: async (kind, id, context = admin) => (await entities.delete({ kind, id }, context)).position,
    get: async (kind, id, context = admin) =>
      parsed((await entities.get({ ref: { kind, id }, perspective: undefined }, context)).json) as Row,
    async list(kind, { context = admin, filter = '', within, configTypes, asIdentity = '' } = {}) {
      const query = { ...noQuery, filter }
      const perspective = {
        asIdentity,
        configTypes: configTypes ?? [],
        hasConfigTypes: configTypes !== undefined,
        policyType: '',
        asClient: false,
      }
      return parsed((await entities.list({ kind, query, within, perspective }, context)).rows) as Row[]
    },
    async [Symbol.asyncDispose]() {
      if (isOpen) await service[Symbol.asyncDispose]()
      isOpen = false
    },
  }
}
