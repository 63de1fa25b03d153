import type { Service } from '@overlay/model'
import {
  type ApiSession,
  type AuditedChange,
  type Change,
  type Context,
  Fault,
  type ListRequest,
  type NetworkEvent,
  type Position,
} from '@overlay/rpc'
import type { Audit, Changes, Entities, Services } from '../src/clients/services.js'

export const ADMIN = '11111111-1111-4111-8111-111111111111'
export const ALICE = '22222222-2222-4222-8222-222222222222'
export const PARTIAL_ADMIN = '33333333-3333-4333-8333-333333333333'

/** Services that answer from memory and record their calls. */
export interface Fakes {
  readonly services: Services
  readonly sessions: Map<string, ApiSession>
  readonly calls: { readonly method: string; readonly request: unknown; readonly context: Context }[]
  /** Pages of rows that lists answer, by owner and kind. */
  readonly rows: Map<string, string[]>
  /** Replaces one method for a test: `identity.getApiSession`, `policy.entities.list`. */
  readonly instead: Map<string, (request: never, context: Context) => Promise<unknown>>
  called(method: string): number
  change(schema: Service, changes: readonly Partial<Change>[]): Position
  headersChanged(identityIds: readonly string[]): void
  /** Adds a change to the audit of a service. It is settled at once. */
  audit(schema: Service, change: { readonly atMs: number; readonly event: object }): void
  /** Sends an event to the streams of events. */
  emit(event: { readonly namespace: string; readonly event_type?: string }): void
  contentKey: string
}

export function sessionFor(token: string, more: Partial<ApiSession> = {}): ApiSession {
  const id = `s-${token.slice(0, 4)}`
  const identityId = `i-${token.slice(0, 4)}`
  return {
    id,
    token,
    identityId,
    identityName: identityId,
    isAdmin: false,
    isPartial: false,
    configTypes: [],
    json: Buffer.from(JSON.stringify({ id, token, identityId, createdAt: '2026-01-01T00:00:00.000Z' })),
    createdAtMs: Date.UTC(2026, 0, 1),
    lastActivityAtMs: Date.UTC(2026, 0, 1),
    timeoutSeconds: 1800,
    endsInMs: 0,
    demandsToken: false,
    secondTokenMs: 0,
    position: undefined,
    ...more,
  }
}

const at = (number: number): Position => ({ timeline: 't1', number })

export function fakes(): Fakes {
  const sessions = new Map([
    [ADMIN, sessionFor(ADMIN, { isAdmin: true })],
    [ALICE, sessionFor(ALICE)],
    [PARTIAL_ADMIN, sessionFor(PARTIAL_ADMIN, { isAdmin: true, isPartial: true })],
  ])
  const calls: { method: string; request: unknown; context: Context }[] = []
  const rows = new Map<string, string[]>()
  const instead: Fakes['instead'] = new Map()
  const heads = new Map<string, number>()
  const listeners = new Map<string, (() => void)[]>()
  const logs = new Map<string, Change[]>()

  const wake = (name: string): void => {
    for (const listener of listeners.get(name)?.splice(0) ?? []) listener()
  }
  /** Waits for a change, the end of the stream or the time of the next empty message. */
  const nextMessage = (name: string, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const go = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', go)
        resolve()
      }
      const timer = setTimeout(go, 500)
      signal.addEventListener('abort', go)
      listeners.set(name, [...(listeners.get(name) ?? []), go])
    })

  const recorded = <T>(name: string, methods: T): T =>
    // each method of a fake is recorded and replaceable
    new Proxy(methods as object, {
      get: (target, method: string) => (request: unknown, context: Context) => {
        const full = `${name}.${method}`
        calls.push({ method: full, request, context })
        const replacement = instead.get(full)
        if (replacement) return replacement(request as never, context)
        const fakeMethod = (target as Record<string, unknown>)[method]
        if (typeof fakeMethod !== 'function') throw new Fault('UNAVAILABLE', `${full} is not there`)
        return fakeMethod(request, context)
      },
    }) as T

  const entitiesOf = (owner: string): Entities => ({
    list: async ({ kind, query }: ListRequest) => {
      const pages = rows.get(`${owner} ${kind}`) ?? ['[]']
      const page = Number(query?.after.toString() || 0)
      const next = page + 1 < pages.length ? Buffer.from(String(page + 1)) : Buffer.alloc(0)
      const limit = query?.limit === '-1' ? '9223372036854775807' : query?.limit || '10'
      return {
        rows: Buffer.from(pages[page] ?? '[]'),
        total: 7,
        limit,
        offset: 0,
        next,
        contentKey: fake.contentKey,
      }
    },
    get: async ({ ref }) => {
      if (ref?.id === 'nothing') throw new Fault('NOT_FOUND', `service with id ${ref.id} not found`)
      return { json: Buffer.from(JSON.stringify({ id: ref?.id, _links: { self: { href: './x' } } })) }
    },
    create: async () => ({ id: 'new-id', position: at(5) }),
    update: async ({ ref }) => ({ id: ref?.id ?? '', position: at(5) }),
    delete: async ({ id }) => ({ id, position: undefined }),
    count: async () => ({ rows: { services: 3, 'edge-routers': 1, 'transit-routers': 2 } }),
    select: async () => ({ ids: [], roles: [], symbol: '', value: '' }),
    view: async () => ({ json: [] }),
    listAttributes: async () => ({
      rows: Buffer.from('["a"]'),
      total: 1,
      limit: '9223372036854775807',
      offset: 0,
      next: Buffer.alloc(0),
      contentKey: '',
    }),
  })

  const changesOf = (schema: string): Changes => ({
    head: async () => at(heads.get(schema) ?? 0),
    load: () => emptyStream(),
    pull: async () => ({
      upto: at(heads.get(schema) ?? 0),
      changes: [],
      more: false,
      after: undefined,
      ageMs: 0,
    }),
    reach: async () => ({}),
    row: () => emptyStream(),
    async *watch({ after }, { signal }) {
      let sent = after?.number ?? 0
      while (!signal.aborted) {
        const changes = (logs.get(schema) ?? []).filter(({ number }) => number > sent)
        sent = heads.get(schema) ?? 0
        yield { upto: at(sent), changes, more: false, after: undefined, ageMs: 0 }
        await nextMessage(schema, signal)
      }
    },
  })

  const audited = new Map<string, AuditedChange[]>()
  let settledMs = 1000
  const auditOf = (schema: string): Audit => ({
    async list({ behind, oldestFirst, limit }) {
      const own = audited.get(schema) ?? []
      const matching = own.filter(({ atMs, id }) => {
        const order = behind ? atMs - behind.atMs || id - behind.id : 0
        return !behind || (oldestFirst ? order > 0 : order < 0)
      })
      const ordered = oldestFirst ? matching : [...matching].reverse()
      const changes = ordered.slice(0, limit)
      const isComplete = limit === 0 || changes.length === ordered.length
      return { changes, isComplete, settledMs }
    },
    async get({ id }) {
      const found = audited.get(schema)?.find((change) => change.id === id)
      if (!found) throw new Fault('NOT_FOUND', `change with id ${schema}.${id} not found`)
      return found
    },
  })

  const changedHeaders: string[] = []
  const emitted: NetworkEvent[] = []
  const fake: Fakes = {
    sessions,
    calls,
    rows,
    instead,
    contentKey: 'k1',
    called: (method) => calls.filter((call) => call.method === method).length,
    change(schema, changes) {
      const log = logs.get(schema) ?? []
      logs.set(schema, log)
      for (const change of changes) {
        const number = (heads.get(schema) ?? 0) + 1
        heads.set(schema, number)
        log.push({ kind: '', id: '', json: Buffer.alloc(0), atMs: 0, number, ...change })
      }
      wake(schema)
      return at(heads.get(schema) ?? 0)
    },
    emit(event) {
      const json = Buffer.from(JSON.stringify(event))
      emitted.push({ namespace: event.namespace, type: event.event_type ?? '', json })
      wake('events')
    },
    audit(schema, { atMs, event }) {
      const own = audited.get(schema) ?? []
      audited.set(schema, own)
      settledMs = Math.max(settledMs, atMs + 1)
      own.push({ id: own.length + 1, atMs, entityType: 'services', json: Buffer.from(JSON.stringify(event)) })
    },
    headersChanged(identityIds) {
      changedHeaders.push(...identityIds)
      wake('headers')
    },
    services: {
      identity: recorded('identity', {
        getApiSession: async ({ token }: { token: string }) => {
          const session = sessions.get(token)
          if (!session) throw new Fault('UNAUTHORIZED')
          return session
        },
        authenticate: async () => sessionFor(ADMIN, { isAdmin: true }),
        markActivity: async () => ({ unknownIds: [] }),
      } as unknown as Services['identity']),
      oidc: recorded('oidc', {} as Services['oidc']),
      pki: recorded('pki', {} as Services['pki']),
      policy: recorded('policy', {
        getHeader: async () => ({
          lastChangeAtMs: Date.UTC(2026, 1, 2),
          positions: {},
          contentKey: fake.contentKey,
        }),
        async *watchHeaders(_: object, { signal }: Context) {
          while (!signal.aborted) {
            yield {
              positions: {},
              identityIds: changedHeaders.splice(0),
              all: false,
              grants: false,
              ageMs: 0,
            }
            await nextMessage('headers', signal)
          }
        },
      } as unknown as Services['policy']),
      sessions: recorded('sessions', {
        async *watchEvents(_: object, { signal }: Context) {
          while (!signal.aborted) {
            yield { events: emitted.splice(0) }
            await nextMessage('events', signal)
          }
        },
      } as unknown as Services['sessions']),
      entitiesOf: (owner) => recorded(`${owner}.entities`, entitiesOf(owner)),
      changesOf: (owner) => recorded(`${owner}.changes`, changesOf(owner)),
      auditOf: (owner) => recorded(`${owner}.audit`, auditOf(owner)),
    },
  }
  return fake
}

async function* emptyStream(): AsyncGenerator<never> {}
