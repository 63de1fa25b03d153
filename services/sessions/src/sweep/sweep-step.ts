import { ownContext } from '@overlay/rpc'
import { type ChangeLog, type FabricEvents, writeChanges } from '@overlay/store/change-log'
import type { Names } from '@overlay/store/kind-store'
import { type Db, isAway, type LockedConnection, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { sessionEvent } from '../access/session-event.js'
import type { AccessChanges, SessionAccess } from '../domain/session-access.js'
import { LARGE_SCOPE, SCOPES_AT_ONCE, SWEEP_PAGE } from '../limits.js'
import { followedPositions } from '../store/followed.js'
import {
  type LargeScope,
  markLarge,
  markSwept,
  newScopes,
  othersArePending,
  type PendingScope,
  replaceChecks,
  saveProgress,
  someLargeScope,
} from '../store/revocation.js'
import { endManySessions, nextSessions, saveGrants, sessionsOfScopes } from '../store/session.js'
import { endTerminators, uncopiedServices } from '../store/terminator.js'
import { type AccessPolicy, callAt, findAccessChanges, findMissing, type Heads } from './ask-policy.js'

export interface StepDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'appended' | 'write'>
  readonly events?: FabricEvents
  readonly policy: AccessPolicy
  readonly names: Names
  readonly heads: Heads
  /** Sessions of one transaction. */
  readonly pageSize?: number
}

/** What a step writes, after other services have answered. */
interface Outcome extends AccessChanges {
  /** The sessions that it has read. */
  readonly sessions: readonly SessionAccess[]
  /** Marks what is swept. True: there may be more to sweep. */
  save(tx: Tx): Promise<boolean>
  /** The next page of a large scope; absent: this is the last one. */
  readonly next?: LargeScope
}

/**
 * Sweeps the new scopes, so that none waits for a large one, or up to `pages` pages of a large scope. A page is read,
 * and policy is asked about it, while the page before it is written. False: nothing is left.
 *
 * One replica at a time: an answer of policy is saved before policy is asked about the same session again, so that no
 * older answer overwrites a newer one. A transaction begins after its answers: a service that does not answer keeps no
 * row and no snapshot.
 */
export function sweepStep(deps: StepDeps, pages = 1): Promise<boolean> {
  const { db } = deps.changeLog
  return db.withAdvisoryLock(`sweep ${db.schema}`, async (connection) => {
    let outcome = await sweepNext(connection, deps)
    for (let page = 1; outcome?.next && page < pages; page++) {
      const { next }: Outcome = outcome
      if (await othersArePending(connection, next)) break
      const [written, read] = await Promise.allSettled([
        write(connection, deps, outcome),
        sweepPage(db, deps, next),
      ])
      if (written.status === 'rejected') throw written.reason
      if (await othersArePending(connection, next)) return true
      if (read.status === 'rejected') throw read.reason
      outcome = read.value
    }
    return outcome !== undefined && (await write(connection, deps, outcome))
  })
}

async function write(
  connection: LockedConnection,
  { changeLog: { appended }, events }: StepDeps,
  { sessions, lost, moved, save }: Outcome,
): Promise<boolean> {
  const { hasMore, ended } = await connection.transaction(async (tx) => {
    await saveGrants(tx, moved)
    const hasMore = await save(tx)
    return { hasMore, ended: await endManySessions(tx, lost) }
  })
  if (!ended) return hasMore
  appended(ended.position, ended.changes)
  if (events) {
    const byId = new Map(sessions.map((session) => [session.id, session]))
    for (const { id } of ended.changes) {
      const session = byId.get(id)
      if (session) events.emit(sessionEvent('deleted', session))
    }
  }
  return hasMore
}

async function sweepNext(db: Db, deps: StepDeps): Promise<Outcome | undefined> {
  const scopes = await newScopes(db, SCOPES_AT_ONCE)
  if (scopes.length > 0) return sweepNew(db, deps, scopes)
  const large = await someLargeScope(db)
  return large && sweepPage(db, deps, large)
}

async function sweepNew(db: Db, deps: StepDeps, scopes: readonly PendingScope[]): Promise<Outcome> {
  const checks = scopes.filter(({ kind }) => kind === 'posture-check')
  const everything = scopes.filter(({ kind }) => kind === 'everything')
  const selecting = scopes.filter(({ kind }) => kind !== 'posture-check' && kind !== 'everything')

  const requiring = await findRequiring(db, deps, checks)
  const candidates = await sessionsOfScopes(db, selecting, LARGE_SCOPE)
  const counts = new Map<number, number>()
  for (const { place } of candidates) counts.set(place, (counts.get(place) ?? 0) + 1)
  const isLarge = (place: number): boolean => (counts.get(place) ?? 0) >= LARGE_SCOPE
  const sessions = candidates.filter(({ place }) => !isLarge(place))
  const isOfApiSession = ({ place }: (typeof candidates)[number]): boolean =>
    selecting[place]?.kind === 'api-session'
  const over = sessions.filter(isOfApiSession)
  const { lost, moved } = await findChanges(
    db,
    deps,
    sessions.filter((session) => !isOfApiSession(session)),
  )
  return {
    sessions,
    lost: [...idsOf(over), ...lost],
    moved,
    async save(tx) {
      await replaceChecks(tx, checks, requiring)
      await markLarge(tx, [...everything, ...selecting.filter((_, place) => isLarge(place))])
      await markSwept(
        tx,
        selecting.filter((_, place) => !isLarge(place)),
      )
      return checks.length > 0 || scopes.length === SCOPES_AT_ONCE || (await someLargeScope(tx)) !== undefined
    },
  }
}

async function findRequiring(
  db: Db,
  { policy }: StepDeps,
  checks: readonly PendingScope[],
): Promise<readonly string[]> {
  if (checks.length === 0) return []
  const postureCheckIds = checks.map(({ id }) => id)
  const { policyIds } = await policy.findRequiring({ postureCheckIds }, callAt(await followedPositions(db)))
  return policyIds
}

async function sweepPage(db: Db, deps: StepDeps, scope: LargeScope): Promise<Outcome> {
  const missed = (schema: string): boolean => scope.kind === 'everything' && scope.schemas.includes(schema)
  if (missed('policy') && scope.sweptTo === '') await endTerminatorsOfMissing(deps)
  const limit = deps.pageSize ?? SWEEP_PAGE
  const sessions = await nextSessions(db, scope, limit)
  const over = new Set(
    scope.kind === 'api-session'
      ? idsOf(sessions)
      : missed('identity')
        ? await withoutApiSession(deps, sessions)
        : [],
  )
  const { lost, moved } = await findChanges(
    db,
    deps,
    sessions.filter(({ id }) => !over.has(id)),
  )
  const last = sessions.at(-1)
  const next = last && sessions.length === limit ? { ...scope, sweptTo: last.id } : undefined
  return {
    sessions,
    lost: [...over, ...lost],
    moved,
    async save(tx) {
      if (next) await saveProgress(tx, next)
      else await markSwept(tx, [scope])
      return true
    },
    ...(next && { next }),
  }
}

/** After changes of identity were missed: the sessions whose API session does not exist. Policy does not know these. */
async function withoutApiSession(
  { names }: StepDeps,
  sessions: readonly SessionAccess[],
): Promise<readonly string[]> {
  const apiSessions = sessions.map(({ apiSessionId }) => apiSessionId)
  const missing = await findMissing(names, 'api-sessions', apiSessions)
  return idsOf(sessions.filter(({ apiSessionId }) => missing.has(apiSessionId)))
}

/** After changes of policy were missed: terminators end with their service. A service that is not copied may be new. */
async function endTerminatorsOfMissing({ changeLog, names }: StepDeps): Promise<void> {
  const missing = await findMissing(names, 'services', await uncopiedServices(changeLog.db))
  if (missing.size === 0) return
  const context = ownContext(new AbortController().signal)
  await writeChanges(changeLog, context, (tx) => endTerminators(tx, sql`service_id = any(${[...missing]})`))
}

/**
 * Policy answers as of the heads: a session may have been authorized at a position beyond those that are followed here,
 * because changes without effect are saved later. If policy cannot reach them, because identity is unavailable, it answers
 * as of the followed positions: no revocation waits for an owner.
 */
async function findChanges(
  db: Db,
  { policy, heads }: StepDeps,
  sessions: readonly SessionAccess[],
): Promise<AccessChanges> {
  if (sessions.length === 0) return { lost: [], moved: [] }
  // read after the revocations, so not older than they are
  const followed = await followedPositions(db)
  const current = { ...followed, ...(await heads()) }
  return findAccessChanges(policy, sessions, callAt(current)).catch((err: unknown) => {
    if (!isAway(err)) throw err
    return findAccessChanges(policy, sessions, callAt(followed))
  })
}

const idsOf = (sessions: readonly SessionAccess[]): string[] => sessions.map(({ id }) => id)
