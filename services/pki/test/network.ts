import { randomUUID } from 'node:crypto'
import { testDatabase } from '@overlay/launcher/testing'
import { localSource, noBus, openChangeLog, type RowChange } from '@overlay/platform/change-log'
import { noQuery } from '@overlay/platform/kind-store'
import { openDatabase } from '@overlay/platform/postgres'
import { type Context, type EnrollmentWish, type EnrollRequest, Fault, ownContext } from '@overlay/rpc'
import pino from 'pino'
import type { Owners } from '../src/enroll/method.js'
import { initPki } from '../src/init.js'
import { openService, type ServiceOptions } from '../src/service.js'

const log = pino({ level: 'silent' })
export const keySecret = 'a key secret of at least 32 characters'
const address = 'api.example:1280'
export const context: Context = ownContext(new AbortController().signal)

type Added = Parameters<Owners['identity']['addAuthenticator']>[0]
type Admitted = Parameters<Owners['sessions']['admitRouter']>[0]

/** A pki of its own, beside owners that keep what they are told and have a real change log. */
export async function startPki(more: Partial<ServiceOptions> = {}) {
  const database = await testDatabase('identity', 'pki', 'sessions')
  const [pki, identity, sessions] = (['pki', 'identity', 'sessions'] as const).map((schema) =>
    openDatabase(database.urlOf(schema), schema, { max: 8 }),
  )
  if (!pki || !identity || !sessions) throw new Error('three databases were opened')
  await initPki({ databaseUrl: database.urlOf('pki'), keySecret, address, log })
  const changeLog = await openChangeLog(pki, noBus, log)
  const owners = {
    identity: await openChangeLog(identity, noBus, log),
    sessions: await openChangeLog(sessions, noBus, log),
  }

  const added: Added[] = []
  const admitted: Admitted[] = []
  const names = new Map<string, string>()
  const told = new Map<string, { readonly kind: string; readonly json: object }>()
  const rowsOf = (kind: string) =>
    async function* () {
      for (const [id, row] of told) if (row.kind === kind) yield { id, json: row.json }
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
  /** A change of another service. */
  const note = async (schema: 'identity' | 'sessions', kind: string, id: string, json: object | null) => {
    const change: RowChange = { kind, id, before: null, after: json, payload: json }
    if (json) told.set(id, { kind, json })
    else told.delete(id)
    const { position } = await owners[schema].write(context, async () => ({ result: id, changes: [change] }))
    return position
  }

  const fakes: Owners = {
    identity: {
      async addAuthenticator(request) {
        const { enrollmentId } = request
        const created = !added.some((other) => other.enrollmentId === enrollmentId)
        if (created) added.push(request)
        const position = created
          ? await note('identity', 'authenticators', enrollmentId, { enrollmentId })
          : await owners.identity.head()
        return { authenticatorId: enrollmentId, created, position }
      },
    },
    sessions: {
      async admitRouter(request) {
        admitted.push(request)
        const router = told.get(request.routerId)
        const json = { ...router?.json, isVerified: true }
        const position = await note('sessions', router?.kind ?? '', request.routerId, json)
        return { id: request.routerId, position }
      },
    },
  }

  const service = await openService({
    changeLog,
    bus: noBus,
    log,
    keySecret,
    address,
    ctrlAddress: 'ctrl.example:6262',
    routerNames: [],
    identityMinutes: 180,
    routerMinutes: 60,
    enrollmentsRunning: 2,
    enrollmentsWaiting: 100,
    owners: fakes,
    viewers: {
      identity: viewerOf(names),
      sessions: viewerOf(names),
    },
    settled: async (written) => written,
    sources,
    ...more,
  })

  /** With all that follows from it here. */
  const tell: typeof note = async (schema, kind, id, json) => {
    const position = await note(schema, kind, id, json)
    await service.changes.reach({ schema, position }, context)
    return position
  }

  const outstanding = async (): Promise<readonly Row[]> => {
    const { rows } = await service.entities.list(listRequest, context)
    return JSON.parse(Buffer.from(rows).toString()) as Row[]
  }

  return {
    ...service,
    changeLog,
    sources,
    owners: fakes,
    added,
    admitted,
    names,
    note,
    tell,
    identityHead: () => owners.identity.head(),
    /** An identity with this enrollment; answers with the token. */
    async wish(given: Partial<EnrollmentWish>) {
      const wanted = { ...noWish, id: randomUUID(), token: randomUUID(), identityId: randomUUID(), ...given }
      await tell('identity', 'identities', wanted.identityId, { name: 'alice', enrollmentWanted: wanted })
      return wanted
    },
    /** A router that is to enroll; answers with its token. */
    async routerWish(method: 'erott' | 'trott', routerId: string = randomUUID()) {
      const id = randomUUID()
      const isEdge = method === 'erott'
      const router = { name: 'r1', isVerified: false, enrollmentId: id, isEdge }
      await tell('sessions', isEdge ? 'edge-routers' : 'transit-routers', routerId, router)
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

export const noWish: EnrollmentWish = {
  id: '',
  token: '',
  method: 'ott',
  identityId: '',
  edgeRouterId: '',
  transitRouterId: '',
  caId: '',
  username: '',
  expiresAtMs: 0,
}

const noRequest: EnrollRequest = { method: '', token: '', username: '', peerCertificates: [] }

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
