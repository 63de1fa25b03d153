import type { Database, Names, Tx } from '@overlay/platform'
import type { Positions } from '@overlay/rpc'
import sql from 'sql-template-tag'
import {
  endManySessions,
  type HeldSession,
  nextSessions,
  saveGrants,
  sessionsOfScopes,
} from '../store/held-session.js'
import {
  type LargeScope,
  markLarge,
  markSwept,
  newScopes,
  type PendingScope,
  replaceChecks,
  saveProgress,
  someLargeScope,
} from '../store/revocation.js'
import { type AskPolicy, askingAt, type Heads, standingsOf, withoutApiSession } from './standing.js'

export interface StepDeps {
  readonly db: Database
  readonly policy: AskPolicy
  readonly names: Names
  readonly heads: Heads
  /** Sessions of one transaction. */
  readonly pageSize?: number
}

const SCOPES_AT_ONCE = 200
/** A scope with as many sessions as this is swept in pages of its own. */
const LARGE = 20
const PAGE_SIZE = 4000

/**
 * New scopes first, so that none waits for a large one, then a page of a large one. False: that was all. One replica
 * at a time: what policy answers is saved before it is asked again, so that no older answer overwrites a newer one.
 */
export async function sweepStep(deps: StepDeps): Promise<boolean> {
  const { isAll, hasLarge } = await inTurn(deps, async (tx) => {
    const scopes = await newScopes(tx, SCOPES_AT_ONCE)
    const hasMore = await sweepNew(tx, deps, scopes)
    return { isAll: !hasMore, hasLarge: (await someLargeScope(tx)) !== undefined }
  })
  if (!hasLarge) return !isAll
  await inTurn(deps, async (tx) => {
    const scope = await someLargeScope(tx)
    if (scope) await sweepPage(tx, deps, scope)
  })
  return true
}

const inTurn = <T>({ db }: StepDeps, work: (tx: Tx) => Promise<T>): Promise<T> =>
  db.transaction(undefined, async (tx) => {
    const name = `sweep ${db.schema}`
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`, 'sweep-turn')
    return work(tx)
  })

/** True: there may be more of them. */
async function sweepNew(tx: Tx, deps: StepDeps, scopes: readonly PendingScope[]): Promise<boolean> {
  if (scopes.length === 0) return false
  const checks = scopes.filter(({ kind }) => kind === 'posture-check')
  if (checks.length > 0) {
    const postureCheckIds = checks.map(({ id }) => id)
    const context = askingAt(await followedPositions(tx))
    const { policyIds } = await deps.policy.findRequiring({ postureCheckIds }, context)
    await replaceChecks(tx, checks, policyIds)
  }
  const everything = scopes.filter(({ kind }) => kind === 'everything')
  const others = scopes.filter(({ kind }) => kind !== 'posture-check' && kind !== 'everything')
  const found = await sessionsOfScopes(tx, others, LARGE)
  const counts = new Map<number, number>()
  for (const { place } of found) counts.set(place, (counts.get(place) ?? 0) + 1)
  const isLarge = (place: number): boolean => (counts.get(place) ?? 0) >= LARGE
  const sessions = found.filter(({ place }) => !isLarge(place))
  const isOver = ({ place }: { readonly place: number }): boolean => others[place]?.kind === 'api-session'
  await endMany(tx, sessions.filter(isOver))
  await endLost(
    tx,
    deps,
    sessions.filter((one) => !isOver(one)),
  )
  await markLarge(tx, [...everything, ...others.filter((_, place) => isLarge(place))])
  await markSwept(
    tx,
    others.filter((_, place) => !isLarge(place)),
  )
  return checks.length > 0 || scopes.length === SCOPES_AT_ONCE
}

async function sweepPage(tx: Tx, deps: StepDeps, scope: LargeScope): Promise<void> {
  const limit = deps.pageSize ?? PAGE_SIZE
  const sessions = await nextSessions(tx, scope, limit)
  if (scope.kind === 'api-session') await endMany(tx, sessions)
  else await endLost(tx, deps, await withLiveApiSession(tx, deps, scope, sessions))
  const last = sessions.at(-1)
  if (last && sessions.length === limit) await saveProgress(tx, scope, last.id)
  else await markSwept(tx, [scope])
}

/** After changes of identity were missed, its API sessions are compared too. */
async function withLiveApiSession(
  tx: Tx,
  { names }: StepDeps,
  { kind, isOfIdentity }: LargeScope,
  sessions: readonly HeldSession[],
): Promise<readonly HeldSession[]> {
  if (kind !== 'everything' || !isOfIdentity) return sessions
  const over = new Set(await withoutApiSession(names, sessions, askingAt({})))
  await endManySessions(tx, [...over])
  return sessions.filter(({ id }) => !over.has(id))
}

/**
 * Policy is asked as of the heads: a session may have been authorized at a position beyond those that are followed
 * here, which save changes without effect at leisure. An owner that does not answer delays no revocation.
 */
async function endLost(tx: Tx, { policy, heads }: StepDeps, sessions: readonly HeldSession[]): Promise<void> {
  if (sessions.length === 0) return
  const positions = { ...(await followedPositions(tx)), ...(await heads()) }
  for await (const { lost, moved } of standingsOf(policy, sessions, askingAt(positions))) {
    await endManySessions(tx, lost)
    await saveGrants(tx, moved)
  }
}

const endMany = (tx: Tx, sessions: readonly HeldSession[]): Promise<void> =>
  endManySessions(
    tx,
    sessions.map(({ id }) => id),
  )

/** Not older than the revocations that were read before. */
async function followedPositions(tx: Tx): Promise<Positions> {
  const { rows } = await tx.query<{ schema: string; timeline: string; number: number }>(
    sql`select schema, timeline, number from followed where timeline is not null`,
    'followed-positions',
  )
  return Object.fromEntries(rows.map(({ schema, timeline, number }) => [schema, { timeline, number }]))
}
