import { type ChangeLog, type FabricEvents, writeChanges } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import type { Db, Tx } from '@overlay/platform/postgres'
import { ownContext } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { sessionEvent } from '../access/session-event.js'
import type { AccessChanges, SessionAccess } from '../domain/session-access.js'
import { followedPositions } from '../store/followed.js'
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
import { endManySessions, nextSessions, saveGrants, sessionsOfScopes } from '../store/session.js'
import { endTerminators, uncopiedServices } from '../store/terminator.js'
import { type AccessPolicy, callAt, findAccessChanges, findMissing, type Heads } from './access.js'

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
  /** Marks what is swept. True: there may be more to sweep. */
  save(tx: Tx): Promise<boolean>
}

const SCOPES_AT_ONCE = 200
/** A scope with as many sessions as this is swept in pages of its own. */
const LARGE = 20
const PAGE_SIZE = 8000

/**
 * Sweeps the new scopes, so that none waits for a large one, or a page of a large scope. False: nothing is left.
 *
 * One replica at a time: an answer of policy is saved before policy is asked again, so that no older answer overwrites a
 * newer one. The transaction begins after the answers: a service that does not answer keeps no row and no snapshot.
 */
export function sweepStep(deps: StepDeps): Promise<boolean> {
  const { db, appended } = deps.changeLog
  return db.withAdvisoryLock(`sweep ${db.schema}`, async (connection) => {
    const outcome = await sweepNext(connection, deps)
    if (!outcome) return false
    const { hasMore, ended } = await connection.transaction(async (tx) => {
      await saveGrants(tx, outcome.moved)
      const hasMore = await outcome.save(tx)
      return { hasMore, ended: await endManySessions(tx, outcome.lost) }
    })
    if (ended) appended(ended.position, ended.changes)
    for (const session of ended?.sessions ?? []) deps.events?.emit(sessionEvent('deleted', session))
    return hasMore
  })
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
  const candidates = await sessionsOfScopes(db, selecting, LARGE)
  const counts = new Map<number, number>()
  for (const { place } of candidates) counts.set(place, (counts.get(place) ?? 0) + 1)
  const isLarge = (place: number): boolean => (counts.get(place) ?? 0) >= LARGE
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
  const limit = deps.pageSize ?? PAGE_SIZE
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
  return {
    lost: [...over, ...lost],
    moved,
    async save(tx) {
      if (last && sessions.length === limit) await saveProgress(tx, scope, last.id)
      else await markSwept(tx, [scope])
      return true
    },
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
 * because changes without effect are saved later. An owner that does not answer delays no revocation.
 */
async function findChanges(
  db: Db,
  { policy, heads }: StepDeps,
  sessions: readonly SessionAccess[],
): Promise<AccessChanges> {
  if (sessions.length === 0) return { lost: [], moved: [] }
  // read after the revocations, so not older than they are
  const positions = { ...(await followedPositions(db)), ...(await heads()) }
  return findAccessChanges(policy, sessions, callAt(positions))
}

const idsOf = (sessions: readonly SessionAccess[]): string[] => sessions.map(({ id }) => id)
