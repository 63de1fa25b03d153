import { setInterval } from 'node:timers/promises'
import { testDatabase } from '@overlay/launcher/testing'
import {
  type Caller,
  type Change,
  type ChangeServiceService,
  type Context,
  CREDENTIALS,
  type EnrollmentWish,
  type EntityServiceService,
  type IdentityServiceService,
  type IssuedCertificate,
  type Methods,
  type OidcServiceService,
  ownContext,
  type Position,
} from '@overlay/rpc'
import { type Bus, type ChangeLog, noBus, openChangeLog, type Source } from '@overlay/store/change-log'
import { encodeViews } from '@overlay/store/kind-store'
import { type Database, type Db, openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import sql from 'sql-template-tag'
import type { TokenSettings } from '../src/external-tokens/external-tokens.js'
import { initIdentity } from '../src/init.js'
import { openService } from '../src/service.js'
import { type TokenSigner, tokenSigner } from './token-signer.js'

/** Cheap on purpose: what is tested is not how long a hash takes. */
export const keySecret = 'a secret that has enough characters'

export const hashing = { memoryKib: 3072, passes: 1, lanes: 1, running: 2, waiting: 50 }

const noKeysFromElsewhere: TokenSettings = {
  skewSeconds: 5,
  isExpiryRequired: true,
  isHttpAllowed: false,
  networks: undefined,
  authorities: undefined,
}

const log = pino({ enabled: false })

/** What the other services answer. */
export interface World {
  readonly wishes: EnrollmentWish[]
  /** The services for which each answer waited; undefined: all. */
  readonly waits: unknown[]
  readonly services: Set<string>
  /** The views of pki, by identity. */
  readonly enrollments: Map<string, object>
  /** The identities about which pki was asked. */
  readonly viewed: string[]
  /** Called after a lookup of services, before its answer arrives. */
  lookedUp: () => Promise<unknown>
  trusted: string[]
  /** Signs what callers ask for. */
  sign: (request: { readonly csrPem: string }) => Promise<IssuedCertificate>
  readonly tokenSigner: TokenSigner
}

export interface Replica extends AsyncDisposable {
  readonly db: Database
  readonly changeLog: ChangeLog
  readonly entities: Methods<EntityServiceService>
  readonly changes: Methods<ChangeServiceService>
  readonly identity: Methods<IdentityServiceService>
  readonly oidc: Methods<OidcServiceService>
}

export interface ReplicaOptions {
  readonly lifetimeSeconds?: number
  readonly bus?: Pick<Bus, 'subscribe' | 'connected'>
  readonly tokens?: Partial<TokenSettings>
  /** Called with the facts of each line about a refused client. */
  readonly onRefusal?: (facts: object, message: string) => void
  /** Called with the facts of each warning about what the service stores. */
  readonly onWarning?: (facts: object, message: string) => void
  /** Called with the text of each statement. */
  readonly onStatement?: (statement: string) => void
}

export interface TestIdentity extends AsyncDisposable {
  readonly url: string
  readonly world: World
  readonly admin: { readonly username: string; readonly password: string }
  replica(options?: ReplicaOptions): Promise<Replica>
}

export const system = (): Context => ownContext(new AbortController().signal)

export const as = (caller: Partial<Caller>): Context => ({
  ...system(),
  caller: { identityId: '', identityName: '', apiSessionId: '', isAdmin: false, configTypes: [], ...caller },
})

export interface TestOptions {
  /** Changes the schema before the service uses it. */
  readonly migrate?: (ownerUrl: string) => Promise<void>
}

/** A fresh schema with its default admin, and any number of replicas of the service over it. */
export async function testIdentity({ migrate }: TestOptions = {}): Promise<TestIdentity> {
  const database = await testDatabase('identity')
  const url = database.urlOf('identity')
  const admin = { username: 'admin', password: 'admin-secret' }
  await migrate?.(database.ownerUrl)
  await initIdentity({ databaseUrl: url, ...admin, hashing, log })
  const world: World = {
    wishes: [],
    waits: [],
    services: new Set(),
    enrollments: new Map(),
    viewed: [],
    lookedUp: async () => undefined,
    trusted: [],
    sign: refuse,
    tokenSigner: tokenSigner(),
  }
  const replicas: Replica[] = []
  return {
    url,
    world,
    admin,
    async replica(options = {}) {
      const replica = await openReplica(url, world, options)
      replicas.push(replica)
      return replica
    },
    async [Symbol.asyncDispose]() {
      for (const replica of replicas) await replica[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

const refuse = async (): Promise<never> => {
  throw new Error('not expected in this test')
}

const observed = (db: Database, onStatement: (statement: string) => void): Database => {
  const observe = <T extends Db>(one: T): T => ({
    ...one,
    query: (query, name) => {
      onStatement(query.text)
      return one.query(query, name)
    },
  })
  return {
    ...observe(db),
    transaction: (deadline, work) => db.transaction(deadline, (tx) => work(observe(tx))),
  }
}

async function openReplica(
  url: string,
  world: World,
  {
    lifetimeSeconds = 0,
    bus = noBus,
    onStatement = () => undefined,
    onRefusal,
    onWarning,
    tokens,
  }: ReplicaOptions,
): Promise<Replica> {
  const db = observed(openDatabase(url, 'identity'), onStatement)
  const changeLog = await openChangeLog(
    db,
    noBus,
    onWarning ? Object.assign(Object.create(log), { warn: onWarning }) : log,
  )
  const maintenance = { check: nothing, export: nothing }
  const service = openService({
    changeLog,
    bus,
    log: onRefusal ? Object.assign(Object.create(log), { info: onRefusal }) : log,
    databaseUrl: url,
    keySecret,
    totpIssuer: 'openziti.io',
    hashing,
    lifetimes: { timeoutSeconds: 1800, lifetimeSeconds },
    address: 'localhost:1280',
    tokenLifetimes: { accessSeconds: 1800, refreshSeconds: 86_400 },
    tokens: { ...noKeysFromElsewhere, ...tokens },
    trustAgeMs: 0,
    snapshots: '',
    snapshotLimitMs: 0,
    snapshotMaxBytes: 0,
    sources: { pki: silentSource('pki'), policy: silentSource('policy'), sessions: silentSource('sessions') },
    viewers: {
      pki: {
        view: viewing((id) => {
          world.viewed.push(id)
          return world.enrollments.get(id)
        }),
      },
      policy: {
        async view(request) {
          const response = await viewing((id) => (world.services.has(id) ? { name: id } : undefined))(request)
          await world.lookedUp()
          return response
        },
      },
      sessions: { view: viewing(() => undefined) },
    },
    pki: {
      getTrustBundle: async () => ({ pems: world.trusted, trustDomain: 'test', keyId: '' }),
      async checkEnrollment(wish) {
        world.wishes.push(wish)
        return {}
      },
      extendCertificate: (request) => world.sign(request),
      issueSessionCertificate: (request) => world.sign(request),
      signTokens: (request) => world.tokenSigner.signTokens(request),
      getTokenKeys: () => world.tokenSigner.getTokenKeys(),
    },
    maintenance: () => maintenance,
    maintenanceOf: { pki: maintenance, policy: maintenance, sessions: maintenance },
    async waitForFollowers(written, _context, schemas) {
      world.waits.push(schemas)
      return written
    },
  })
  for (const schema of ['pki', 'policy', 'sessions'])
    await service.changes.reach({ schema, position: start }, system())
  return {
    db,
    changeLog,
    entities: service.entities,
    changes: service.changes,
    identity: service.identity,
    oidc: service.oidc,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await changeLog[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
    },
  }
}

const viewing =
  (viewOf: (id: string) => object | undefined) =>
  async ({ ids }: { readonly ids: readonly string[] }) =>
    encodeViews(ids.map(viewOf))

const start = { timeline: '00000000-0000-4000-8000-000000000001', number: 0 }
const noChanges = { upto: start, after: start, changes: [], more: false, ageMs: 0 }

/** A service that never changes a row: tests apply the effects of changes themselves. */
const silentSource = (schema: string): Source => ({
  schema,
  async *load() {
    yield noChanges
  },
  async *watch(_after, signal) {
    for await (const _ of setInterval(1000, undefined, { signal })) yield noChanges
  },
  pull: async () => noChanges,
  row: async () => Buffer.alloc(0),
})

async function* nothing(): AsyncGenerator<never> {}

type AuthenticateRequest = Parameters<Methods<IdentityServiceService>['authenticate']>[0]

export const login = (members: Partial<AuthenticateRequest>): AuthenticateRequest => ({
  method: 'password',
  username: '',
  password: '',
  peerCertificates: [],
  isLeafAlone: false,
  bearerTokens: [],
  configTypes: [],
  envInfo: Buffer.alloc(0),
  sdkInfo: Buffer.alloc(0),
  ipAddress: '127.0.0.1',
  ...members,
})

export const bytes = (json: object): Buffer => Buffer.from(JSON.stringify(json))

export const parsed = <T = Record<string, unknown>>(json: Uint8Array): T =>
  JSON.parse(Buffer.from(json).toString()) as T

/** Without those of credentials, which follow logins by a timer. */
export async function changesAfter(
  changeLog: Pick<ChangeLog, 'pull'>,
  before: Position,
): Promise<readonly Change[]> {
  const { changes } = await changeLog.pull(before)
  return changes.filter(({ kind }) => kind !== CREDENTIALS)
}

/** How many connections wait for a lock, in statements that contain this text. */
export async function lockWaits(db: Db, text = ''): Promise<number> {
  const { rows } = await db.query(sql`
    select from pg_stat_activity
     where wait_event_type = 'Lock' and datname = current_database() and query like ${`%${text}%`}`)
  return rows.length
}
