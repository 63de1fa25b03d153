import { testDatabase } from '@overlay/launcher/testing'
import { type ChangeLog, noBus, openChangeLog } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Database, type Db, openDatabase } from '@overlay/platform/postgres'
import {
  type Caller,
  type Context,
  type EnrollmentWish,
  type EntityServiceService,
  type IdentityServiceService,
  type IssuedCertificate,
  type Methods,
  ownContext,
} from '@overlay/rpc'
import pino from 'pino'
import { openAuthorities } from '../src/credentials/authorities.js'
import { openHashing } from '../src/credentials/hashing.js'
import { openTrust } from '../src/credentials/trust.js'
import { initIdentity } from '../src/init.js'
import { entities } from '../src/kinds/entities.js'
import { identityService } from '../src/methods/identity-service.js'

/** Cheap on purpose: what is tested is not how long a hash takes. */
export const keySecret = 'a secret that has enough characters'

export const hashing = { memoryKib: 3072, passes: 1, lanes: 1, running: 2, waiting: 50 }

const log = pino({ enabled: false })

/** What the other services answer. */
export interface World {
  readonly wishes: EnrollmentWish[]
  readonly services: Set<string>
  /** Called when services have been looked up, before the answer arrives. */
  lookedUp: () => Promise<unknown>
  trusted: string[]
  grant: () => Promise<object>
  /** Signs what callers ask for. */
  sign: (request: { readonly csrPem: string }) => Promise<IssuedCertificate>
}

export interface Replica extends AsyncDisposable {
  readonly db: Database
  readonly changeLog: ChangeLog
  readonly entities: Methods<EntityServiceService>
  readonly identity: Methods<IdentityServiceService>
}

export interface ReplicaOptions {
  readonly lifetimeSeconds?: number
  /** Called with the text of each statement. */
  readonly seen?: (statement: string) => void
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
  caller: { identityId: '', apiSessionId: '', isAdmin: false, configTypes: [], ...caller },
})

/** A fresh schema with its default admin, and any number of replicas of the service over it. */
export async function testIdentity(): Promise<TestIdentity> {
  const database = await testDatabase('identity')
  const url = database.urlOf('identity')
  const admin = { username: 'admin', password: 'admin-secret' }
  await initIdentity({ databaseUrl: url, ...admin, hashing, log })
  const world: World = {
    wishes: [],
    services: new Set(),
    lookedUp: async () => undefined,
    trusted: [],
    grant: async () => ({}),
    sign: refuse,
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
  throw new Error('this test needs nobody for it')
}

const watched = (db: Database, seen: (statement: string) => void): Database => {
  const seeing = <T extends Db>(one: T): T => ({
    ...one,
    query: (query, name) => {
      seen(query.text)
      return one.query(query, name)
    },
  })
  return {
    ...seeing(db),
    transaction: (deadline, work) => db.transaction(deadline, (tx) => work(seeing(tx))),
  }
}

async function openReplica(
  url: string,
  world: World,
  { lifetimeSeconds = 0, seen = () => undefined }: ReplicaOptions,
): Promise<Replica> {
  const db = watched(openDatabase(url, 'identity'), seen)
  const changeLog = await openChangeLog(db, noBus, log)
  const nothing = { view: async ({ ids }: { ids: string[] }) => ({ json: ids.map(() => Buffer.alloc(0)) }) }
  const pki = {
    getTrustBundle: async () => ({ pems: world.trusted, trustDomain: 'test', keyId: '' }),
    async checkEnrollment(wish: EnrollmentWish) {
      world.wishes.push(wish)
      return {}
    },
    grantEnrollment: () => world.grant(),
    reach: async () => ({}),
    extendCertificate: (request: { csrPem: string }) => world.sign(request),
    issueSessionCertificate: (request: { csrPem: string }) => world.sign(request),
  }
  const names: Names = async (_kind, ids) => {
    const found = new Map(ids.filter((id) => world.services.has(id)).map((id) => [id, id]))
    await world.lookedUp()
    return found
  }
  const authorities = openAuthorities(changeLog, { catchUp: async () => undefined })
  const hasher = openHashing(hashing)
  const trust = openTrust(pki, 0)
  const own = entities({
    changeLog,
    hashing: hasher,
    trust,
    authorities,
    pki,
    names,
    others: { pki: nothing, sessions: nothing },
    settled: async (written) => written,
  })
  return {
    db,
    changeLog,
    entities: own,
    identity: identityService({
      changeLog,
      hashing: hasher,
      trust,
      authorities,
      pki,
      configTypes: { ready: async () => undefined },
      entities: own,
      lifetimes: { timeoutSeconds: 1800, lifetimeSeconds },
      keySecret,
      issuer: 'openziti.io',
      factorSettled: async (written) => written,
      jobs: { startIntegrityRun: refuse, getIntegrityRun: refuse, takeSnapshot: refuse },
    }),
    async [Symbol.asyncDispose]() {
      await changeLog[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
    },
  }
}

type AuthenticateRequest = Parameters<Methods<IdentityServiceService>['authenticate']>[0]

export const login = (given: Partial<AuthenticateRequest>): AuthenticateRequest => ({
  method: 'password',
  username: '',
  password: '',
  peerCertificates: [],
  bearerTokens: [],
  configTypes: [],
  envInfo: Buffer.alloc(0),
  sdkInfo: Buffer.alloc(0),
  ipAddress: '127.0.0.1',
  ...given,
})

export const bytes = (json: object): Buffer => Buffer.from(JSON.stringify(json))

export const parsed = <T = Record<string, unknown>>(json: Uint8Array): T =>
  JSON.parse(Buffer.from(json).toString()) as T
