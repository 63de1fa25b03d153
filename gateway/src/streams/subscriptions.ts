import type { NetworkEvent } from '@overlay/rpc'
import { COUNTS_MS, MAX_INTERVAL_CHARACTERS, MAX_SUBSCRIPTIONS, MIN_COUNTS_MS } from '../limits.js'

/** A request that cannot be met, with the text for the client. */
export class RefusedRequest extends Error {
  override readonly name = 'RefusedRequest'
}

/** The events that one stream receives: by namespace all, or those of some types. */
export interface Subscriptions {
  readonly events: ReadonlyMap<string, ReadonlySet<string> | 'all'>
  /** Time between two counts of entities; undefined: none are wanted. */
  readonly countsEveryMs: number | undefined
}

/** wire: header 10 of an event, by namespace. */
const eventTypes: Readonly<Record<string, string>> = {
  alert: 'alert',
  connect: 'connect',
  'edge.apiSessions': 'apiSession',
  'edge.entityCounts': 'entityCount',
  'edge.sessions': 'session',
  entityChange: 'entity.change',
  'fabric.circuits': 'circuit',
  'fabric.cluster': 'cluster',
  'fabric.links': 'link',
  'fabric.routers': 'router',
  'fabric.terminators': 'terminator',
  'fabric.usage': 'usage.v3',
  metrics: 'metrics',
  services: 'service',
}

/** wire: newer clients subscribe to `circuit` where older ones name the namespace. Undefined: there is no such event. */
const namespaces: ReadonlyMap<string, string> = new Map(
  Object.entries(eventTypes).flatMap(([namespace, type]) => [
    [type, namespace],
    [namespace, namespace],
  ]),
)

export const eventTypeOf = (namespace: string): string => eventTypes[namespace] ?? namespace

interface Request {
  readonly format?: unknown
  readonly subscriptions?: unknown
}

/**
 * What a StreamEventsRequest asks for. wire: unknown types are ignored, an unknown format is refused.
 * `options.include` limits the types of the events, `options.interval` is the time between counts.
 */
export function subscriptionsOf(body: Buffer): Subscriptions {
  const { format, subscriptions } = parse(body)
  if (format !== 'json') throw new RefusedRequest(`invalid format ['${String(format)}']`)
  if (!Array.isArray(subscriptions) || subscriptions.length > MAX_SUBSCRIPTIONS)
    throw new RefusedRequest(`expected a list of at most ${MAX_SUBSCRIPTIONS} subscriptions`)
  const events = new Map<string, ReadonlySet<string> | 'all'>()
  let countsEveryMs: number | undefined
  for (const subscription of subscriptions) {
    const { type, options } = (subscription ?? {}) as { type?: unknown; options?: Options }
    const namespace = typeof type === 'string' ? namespaces.get(type) : undefined
    if (namespace === undefined) continue
    if (namespace === 'edge.entityCounts') countsEveryMs = intervalOf(options?.interval)
    else events.set(namespace, union(events.get(namespace), includedTypes(namespace, options?.include)))
  }
  return { events, countsEveryMs }
}

interface Options {
  readonly include?: unknown
  readonly interval?: unknown
}

function parse(body: Buffer): Request {
  try {
    const request: unknown = JSON.parse(body.toString())
    if (typeof request === 'object' && request !== null) return request
  } catch (err) {
    if (!(err instanceof SyntaxError)) throw err
  }
  throw new RefusedRequest('the request is not a JSON object')
}

function includedTypes(type: string, include: unknown): ReadonlySet<string> | 'all' {
  const list = typeof include === 'string' ? [include] : include
  if (list === undefined || list === null) return 'all'
  if (!Array.isArray(list)) throw new RefusedRequest(`invalid include of ${type}`)
  return list.length === 0 ? 'all' : new Set(list.slice(0, MAX_SUBSCRIPTIONS).map(String))
}

const union = (
  a: ReadonlySet<string> | 'all' | undefined,
  b: ReadonlySet<string> | 'all',
): ReadonlySet<string> | 'all' =>
  a === undefined ? b : a === 'all' || b === 'all' ? 'all' : new Set([...a, ...b])

const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const

/** wire: a duration in Go's form, such as `5m0s`. */
function intervalOf(interval: unknown): number {
  if (interval === undefined) return COUNTS_MS
  const isText = typeof interval === 'string' && interval.length <= MAX_INTERVAL_CHARACTERS
  const parts = isText ? [...interval.matchAll(/(\d+(?:\.\d+)?)(ms|[smh])/g)] : []
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== interval)
    throw new RefusedRequest(
      `invalid duration value for edge.entityCounts interval: '${String(interval).slice(0, MAX_INTERVAL_CHARACTERS)}'`,
    )
  const ms = parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * units[unit as keyof typeof units],
    0,
  )
  return Math.min(Math.max(ms, MIN_COUNTS_MS), 2 ** 31 - 1)
}

export function isSubscribed({ events }: Subscriptions, { namespace, type }: NetworkEvent): boolean {
  const types = events.get(namespace)
  return types === 'all' || (types?.has(type) ?? false)
}
