import {
  apiSession,
  authenticator,
  authPolicy,
  enrollment,
  externalJwtSigner,
  identity as identityKind,
  type Service,
  transitRouter,
} from '@overlay/model'
import { metrics } from '@overlay/process'
import { issuerOf, openTokenKeys, type TokenKeys } from '@overlay/process/tokens'
import { type Change, type Context, ownContext, type Positions, traceparentOf } from '@overlay/rpc'
import type { Followed, FollowLog } from '@overlay/store/change-log'
import type { Services } from '../clients/services.js'
import { requestId } from '../http/ids.js'
import { FLUSH_MS, LOAD_MS } from '../limits.js'
import type { Gauged } from './cache.js'
import { followChanges } from './follow.js'
import { type Headers, openHeaders } from './headers.js'
import { type Identities, openIdentities } from './identities.js'
import { openServiceLists, type ServiceLists } from './service-lists.js'
import { openSessions, type Sessions } from './sessions.js'
import type { WritePositions } from './write-positions.js'

/** Cached data of the services, and the streams of changes that invalidate it. */
export interface GatewayCaches extends AsyncDisposable {
  readonly sessions: Sessions
  readonly identities: Identities
  readonly headers: Headers
  readonly lists: ServiceLists
  readonly tokenKeys: TokenKeys
  /** What was written through this gateway, without additions. */
  readonly written: WritePositions['withoutAdditions']
  /** The state of the stream of each component that the gateway follows: 'ok' or 'unavailable'. */
  readonly componentStates: () => Readonly<Record<Service, string>>
  /**
   * Runs when something in `tag` has changed (`api-sessions <id>`, `identities <id>`), or anything may have. At most one
   * listener.
   */
  onDrop(listener: (tag?: string) => void): void
  /** Runs when keys or certificates of the network may have changed. pki shows the change at these positions. */
  onKeys(listener: (seen: Positions) => void): void
}

/** @param address of the APIs for clients, as host:port */
export function openCaches(
  services: Services,
  writePositions: WritePositions,
  log: FollowLog,
  address: string,
): GatewayCaches {
  const never = new AbortController().signal
  /** For calls that several requests may wait for: no single request cancels them. */
  const context = (): Context => ({
    ...ownContext(never),
    requestId: requestId(),
    traceparent: traceparentOf(undefined),
    deadline: new Date(Date.now() + LOAD_MS),
    positions: writePositions.positions(),
  })

  const tokenKeys = openTokenKeys({
    pki: services.pki,
    context,
    log,
    onRemoved: (id) => sessions.drop(`keys ${id}`),
  })
  const sessions = openSessions({
    identity: services.identity,
    tokenKeys,
    issuer: issuerOf(address),
    writePositions,
    followed: () => identity,
    log,
    context,
  })
  const identities = openIdentities({
    entities: services.entitiesOf('identity'),
    writePositions,
    followed: { identity: () => identity, pki: () => pki },
    context,
  })
  const headers = openHeaders({ policy: services.policy, writePositions, log, context })

  let dropped: (tag?: string) => void = () => undefined
  const drop = (tag: string): void => {
    sessions.drop(tag)
    identities.drop(tag)
    dropped(tag)
  }
  const dropAll = (): void => {
    sessions.dropAll()
    identities.dropAll()
    dropped()
  }
  const identity: Followed = followChanges('identity', services.changesOf('identity'), log, writePositions, {
    kinds: [identityKind.kind, apiSession.kind, authenticator.kind, ...sharedKinds],
    restart: dropAll,
    apply: (changes) => dropChanged(changes, drop, dropAll),
  })
  const keysListeners: ((seen: Positions) => void)[] = [tokenKeys.reload]
  const keysChanged = (seen: Positions): void => {
    for (const listener of keysListeners) listener(seen)
  }
  const pki: Followed = followChanges('pki', services.changesOf('pki'), log, writePositions, {
    kinds: [enrollment.kind, KEYS],
    restart(seen) {
      identities.dropAll()
      keysChanged(seen)
    },
    apply(changes, seen) {
      dropChanged(changes, identities.drop, identities.dropAll)
      if (!changes.some(({ kind }) => kind === KEYS)) return
      identities.dropAll() // they show tokens of enrollments, which the key of the server signs
      keysChanged(seen)
    },
  })
  // nothing of it is cached: the stream shows whether sessions answers
  const sessionsComponent: Followed = followChanges(
    'sessions',
    services.changesOf('sessions'),
    log,
    writePositions,
    {
      kinds: [transitRouter.kind], // no kinds would be all
      restart: () => undefined,
      apply: () => undefined,
    },
  )
  const lists = openServiceLists()
  const flushing = setInterval(() => {
    void sessions.flush()
    updateMetrics({ sessions, identities, headers, lists })
  }, FLUSH_MS)

  return {
    sessions,
    identities,
    headers,
    lists,
    tokenKeys,
    written: writePositions.withoutAdditions,
    componentStates: () => {
      const stateOf = (source: Pick<Followed, 'isHeard'>): string => (source.isHeard() ? 'ok' : 'unavailable')
      return {
        identity: stateOf(identity),
        pki: stateOf(pki),
        policy: stateOf(headers),
        sessions: stateOf(sessionsComponent),
      }
    },
    onDrop(listener) {
      dropped = listener
    },
    onKeys: (listener) => void keysListeners.push(listener),
    async [Symbol.asyncDispose]() {
      clearInterval(flushing)
      await sessions.flush()
      await Promise.all(
        [identity, pki, headers, sessionsComponent].map((source) => source[Symbol.asyncDispose]()),
      )
    },
  }
}

/** Publishes the counts periodically: a labelled counter costs more than the lookup itself. */
function updateMetrics(caches: Readonly<Record<string, { readonly gauged: Gauged }>>): void {
  for (const [cache, { gauged }] of Object.entries(caches)) {
    const { hits, misses } = gauged.takeCounts()
    metrics.cacheRequests.inc({ cache, result: 'hit' }, hits)
    metrics.cacheRequests.inc({ cache, result: 'miss' }, misses)
    metrics.cacheBytes.set({ cache }, gauged.bytes)
  }
}

/** Of pki: changes of this kind concern its keys. */
const KEYS = 'keys'

/** Rows that concern any number of identities. */
const sharedKinds: ReadonlySet<string> = new Set([authPolicy.kind, externalJwtSigner.kind])

/** Rows that the answer about their identity contains. */
const kindsOfIdentities: ReadonlySet<string> = new Set([authenticator.kind, enrollment.kind])

/** Drops the cached values that contain a changed row, and those of the identity that the row belongs to. */
function dropChanged(changes: readonly Change[], drop: (tag: string) => void, dropAll: () => void): void {
  for (const { kind, id, json } of changes) {
    if (sharedKinds.has(kind)) dropAll()
    drop(`${kind} ${id}`)
    if (json.length === 0 || !kindsOfIdentities.has(kind)) continue
    const { identityId } = JSON.parse(json.toString()) as { identityId?: string | null }
    if (identityId) drop(`identities ${identityId}`)
  }
}
