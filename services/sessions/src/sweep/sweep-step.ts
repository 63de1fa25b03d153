import type { ChangeLog } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import type { Positions } from '@overlay/rpc'
import sql from 'sql-template-tag'
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
import {
  endManySessions,
  type HeldSession,
  nextSessions,
  saveGrants,
  sessionsOfScopes,
} from '../store/session.js'
import { type AskPolicy, askingAt, type Heads, standingOf, withoutApiSession } from './access.js'

export interface StepDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'appended'>
  readonly policy: AskPolicy
  readonly names: Names
  readonly heads: Heads
  /** Sessions of one transaction. */
  readonly pageSize?: number
}

/** Ids of sessions that end. */
type Ended = readonly string[]

interface Step {
  readonly ended: Ended
  /** There may be more to sweep. */
  readonly hasMore: boolean
}

const SCOPES_AT_ONCE = 200
/** A scope with as many sessions as this is swept in pages of its own. */
const LARGE = 20
const PAGE_SIZE = 8000

/**
 * New scopes first, so that none waits for a large one, else a page of a large one. False: that was all. One replica
 * at a time: what policy answers is saved before it is asked again, so that no older answer overwrites a newer one.
 */
export const sweepStep = (deps: StepDeps): Promise<boolean> =>
  inTurn(deps, async (tx) => {
    const scopes = await newScopes(tx, SCOPES_AT_ONCE)
    if (scopes.length > 0) return sweepNew(tx, deps, scopes)
    const large = await someLargeScope(tx)
    return { hasMore: large !== undefined, ended: large ? await sweepPage(tx, deps, large) : [] }
  })

async function inTurn({ changeLog }: StepDeps, work: (tx: Tx) => Promise<Step>): Promise<boolean> {
  const { db } = changeLog
  const { hasMore, appended } = await db.transaction(undefined, async (tx) => {
    const name = `sweep ${db.schema}`
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 0))`, 'sweep-turn')
    const { hasMore, ended } = await work(tx)
    return { hasMore, appended: await endManySessions(tx, ended) }
  })
  if (appended) changeLog.appended(appended.position, appended.changes)
  return hasMore
}

async function sweepNew(tx: Tx, deps: StepDeps, scopes: readonly PendingScope[]): Promise<Step> {
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
  const over = idsOf(sessions.filter(isOver))
  const lost = await findLost(
    tx,
    deps,
    sessions.filter((one) => !isOver(one)),
  )
  await markLarge(tx, [...everything, ...others.filter((_, place) => isLarge(place))])
  await markSwept(
    tx,
    others.filter((_, place) => !isLarge(place)),
  )
  const hasMore =
    checks.length > 0 || scopes.length === SCOPES_AT_ONCE || (await someLargeScope(tx)) !== undefined
  return { hasMore, ended: [...over, ...lost] }
}

async function sweepPage(tx: Tx, deps: StepDeps, scope: LargeScope): Promise<Ended> {
  const limit = deps.pageSize ?? PAGE_SIZE
  const sessions = await nextSessions(tx, scope, limit)
  const over = await withoutLiveApiSession(deps, scope, sessions)
  const lost = await findLost(
    tx,
    deps,
    sessions.filter(({ id }) => !over.has(id)),
  )
  const last = sessions.at(-1)
  if (last && sessions.length === limit) await saveProgress(tx, scope, last.id)
  else await markSwept(tx, [scope])
  return [...over, ...lost]
}

/** Ids of those that end whatever policy says. After changes of identity were missed, its API sessions are compared. */
async function withoutLiveApiSession(
  { names }: StepDeps,
  { kind, isOfIdentity }: LargeScope,
  sessions: readonly HeldSession[],
): Promise<ReadonlySet<string>> {
  if (kind === 'api-session') return new Set(idsOf(sessions))
  const isCompared = kind === 'everything' && isOfIdentity
  return new Set(isCompared ? await withoutApiSession(names, sessions, askingAt({})) : [])
}

/**
 * Policy is asked as of the heads: a session may have been authorized at a position beyond those that are followed
 * here, which save changes without effect at leisure. An owner that does not answer delays no revocation.
 */
async function findLost(
  tx: Tx,
  { policy, heads }: StepDeps,
  sessions: readonly HeldSession[],
): Promise<Ended> {
  if (sessions.length === 0) return []
  const positions = { ...(await followedPositions(tx)), ...(await heads()) }
  const { lost, moved } = await standingOf(policy, sessions, askingAt(positions))
  await saveGrants(tx, moved)
  return lost
}

const idsOf = (sessions: readonly HeldSession[]): string[] => sessions.map(({ id }) => id)

/** Not older than the revocations that were read before. */
async function followedPositions(tx: Tx): Promise<Positions> {
  const { rows } = await tx.query<{ schema: string; timeline: string; number: number }>(
    sql`select schema, timeline, number from followed where timeline is not null`,
    'followed-positions',
  )
  return Object.fromEntries(rows.map(({ schema, timeline, number }) => [schema, { timeline, number }]))
}
