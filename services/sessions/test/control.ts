import { webcrypto } from 'node:crypto'
import { BlockList } from 'node:net'
import { type TestBus, testBus, testDatabase } from '@overlay/launcher/testing'
import type { Written } from '@overlay/rpc'
import { type Bus, type ChangeLog, noBus, openBus, openChangeLog } from '@overlay/store/change-log'
import { entityService } from '@overlay/store/kind-store'
import { type Database, openDatabase } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { authority, certify, type Holder, type Profile } from '../../identity/test/certificates.js'
import { type RouterCertificatesDeps, routerCertificates } from '../src/certificates/router-certificates.js'
import { type Control, type ControlOptions, openControl } from '../src/control-channel.js'
import { edgeRouters } from '../src/kinds/edge-router.js'
import { transitRouters } from '../src/kinds/transit-router.js'
import { openRouterDirectory, type RouterDirectory } from '../src/routers/router-directory.js'
import { resetEnrollment } from '../src/store/router.js'
import { freeNames } from './router-names.js'
import { context } from './routers.js'
import { log } from './store.js'
import type { RouterKey } from './test-router.js'

export interface Replica extends AsyncDisposable {
  readonly id: string
  readonly port: number
  readonly control: Control
  readonly directory: RouterDirectory
  readonly bus: Bus
  readonly db: Database
  readonly changeLog: ChangeLog
  /** Ends as a process does that is killed: its rows stay. */
  kill(): Promise<void>
}

export interface ReplicaOptions extends Partial<Omit<ControlOptions, 'certificates'>> {
  /** Issues certificates for routers. */
  readonly pki?: RouterCertificatesDeps['pki']
}

export interface TestNetwork extends AsyncDisposable {
  readonly db: Database
  readonly bus: TestBus | undefined
  /** Starts a replica. Its id is 'sessions' by default. */
  replica(id?: string, options?: ReplicaOptions): Promise<Replica>
  /** Creates a router that has enrolled. */
  createRouter(name: string, profile?: Partial<Profile>): Promise<RouterKey>
  /** A certificate for a router that another authority may have issued. */
  certify(id: string, profile?: Partial<Profile>): Promise<RouterKey>
  /** Through the replica `by`: returns when the replica has applied it. */
  updateRouter(id: string, body: object, by: Replica): Promise<void>
  deleteRouter(id: string, by: Replica): Promise<void>
  /** As a new enrollment does. */
  resetEnrollment(id: string, by: Replica): Promise<void>
}

/** Replicas of the control channel on one database, with an authority of their own. */
export async function startControlNetwork({ hasBus = false } = {}): Promise<TestNetwork> {
  const database = await testDatabase('sessions')
  const bus = hasBus ? await testBus() : undefined
  const root = await authority('root')
  const serverKey = await keyOf('localhost', await certify({ name: 'localhost', issuer: root }))
  const running = new Set<Replica>()
  const own = openDatabase(database.urlOf('sessions'), 'sessions')
  const ownLog = await openChangeLog(own, noBus, log)

  const issue = async (id: string, profile: Partial<Profile> = {}): Promise<RouterKey> =>
    keyOf(id, await certify({ name: id, issuer: root, ...profile }))

  async function replica(id = 'sessions', { pki, ...options }: ReplicaOptions = {}): Promise<Replica> {
    const db = openDatabase(database.urlOf('sessions'), 'sessions')
    const ownBus = bus ? await openBus(bus.url, log) : noBus
    const changeLog = await openChangeLog(db, ownBus, log)
    const directory = await openRouterDirectory(changeLog, log)
    const control = await openControl({
      changeLog,
      bus: ownBus,
      directory,
      log,
      listen: {
        address: '127.0.0.1:0',
        controllerId: id,
        limits: { connections: 5000, connectionsPerSource: 5000, proxies: new BlockList() },
        fetchKey: async () => ({
          keyPem: serverKey.keyPem,
          chainPem: serverKey.certPem,
          trustPems: [root.certificate.toString()],
        }),
      },
      ...options,
      certificates: pki && routerCertificates({ changeLog, directory, pki }),
    })
    const close = async (): Promise<void> => {
      if (!running.delete(started)) return
      await control[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
      await changeLog[Symbol.asyncDispose]()
      await ownBus[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
    }
    const started: Replica = {
      id,
      port: (await control.listening) ?? 0,
      control,
      directory,
      bus: ownBus,
      db,
      changeLog,
      async kill() {
        await db[Symbol.asyncDispose]() // what it writes at its end is lost
        await close().catch(() => undefined)
      },
      [Symbol.asyncDispose]: close,
    }
    running.add(started)
    return started
  }

  const kind = 'edge-routers'
  const json = (body: object) => Buffer.from(JSON.stringify(body))
  const change = (id: string, body: object, changeLog: ChangeLog) =>
    entitiesOf(changeLog).update({ ref: { kind, id }, json: json(body), mask: Object.keys(body) }, context)
  const applied = async (written: Written | undefined, ...replicas: readonly Replica[]) => {
    const position = written?.position
    const signal = AbortSignal.timeout(30_000)
    if (position) await Promise.all(replicas.map(({ directory }) => directory.waitFor(position, signal)))
  }

  return {
    db: own,
    bus,
    replica,
    certify: issue,
    async createRouter(name, profile) {
      const { id } = await entitiesOf(ownLog).create({ kind, json: json({ name }) }, context)
      const key = await issue(id, profile)
      const { fingerprint } = key
      await own.query(
        sql`update router set is_verified = true, fingerprint = ${fingerprint}, cert_pem = ${key.certPem} where id = ${id}`,
      )
      await applied(await change(id, { cost: 1 }, ownLog), ...running) // a change row with the fingerprint
      return key
    },
    updateRouter: async (id, body, by) => applied(await change(id, body, by.changeLog), by),
    deleteRouter: async (id, by) => applied(await entitiesOf(by.changeLog).delete({ kind, id }, context), by),
    resetEnrollment: async (id, by) => applied(await resetEnrollment(by.changeLog, context, id), by),
    async [Symbol.asyncDispose]() {
      await Promise.all([...running].map((one) => one[Symbol.asyncDispose]()))
      await ownLog[Symbol.asyncDispose]()
      await own[Symbol.asyncDispose]()
      await bus?.[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

function entitiesOf(changeLog: ChangeLog) {
  const routerDeps = {
    db: changeLog.db,
    identity: freeNames,
    pki: { view: async () => ({ json: [] }) },
    waitForFollowers: async <T>(written: T) => written,
  }
  return entityService({
    changeLog,
    kinds: [edgeRouters(routerDeps), transitRouters(routerDeps)],
    names: async () => new Map(),
  })
}

async function keyOf(id: string, { certificate, keys }: Holder): Promise<RouterKey> {
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  return {
    id,
    keyPem: `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString('base64')}\n-----END PRIVATE KEY-----\n`,
    certPem: certificate.toString(),
    fingerprint: fingerprintOf(certificate),
  }
}
