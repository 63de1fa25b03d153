import { reconnect, runPeriodically } from '@overlay/process/async'
import { Fault, type Position } from '@overlay/rpc'
import { type ChangeLog, deletedIds } from '@overlay/store/change-log'
import { FOLLOW_PAUSES, PRUNE_ENDED_MS } from '../limits.js'
import { pruneEnded, recentlyEnded } from '../store/ended-session.js'

/**
 * Calls `onEnded` with the ids of sessions that any replica has ended, one call at a time. Calls are repeated after
 * failures, so sessions may come again.
 */
export async function followEndedSessions(
  changeLog: ChangeLog,
  onEnded: (ids: readonly string[]) => Promise<unknown>,
): Promise<AsyncDisposable> {
  const { db, log } = changeLog
  const stop = new AbortController()
  let at: Position | undefined = await changeLog.head()

  async function follow(works: () => void): Promise<void> {
    if (!at) {
      const head = await changeLog.head()
      const recent = await recentlyEnded(db)
      if (recent.length > 0) await onEnded(recent)
      at = head
    }
    for await (const { upto, changes } of changeLog.watch(at, stop.signal, { kinds: ['sessions'] })) {
      const ids = deletedIds(changes, 'sessions')
      if (ids.length > 0) await onEnded(ids)
      if (upto) at = upto
      works()
    }
  }
  const following = reconnect({
    ...FOLLOW_PAUSES,
    signal: stop.signal,
    connect: ({ works }) => follow(works),
    onFailure(err) {
      if (err instanceof Fault && err.code === 'OUT_OF_RANGE') at = undefined
    },
    onOutage: (err) => log.warn({ err }, 'ends of sessions not followed'),
  })
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await following
    },
  }
}

/** Deletes the tokens of sessions that have ended long ago. */
export const startPruningEnded = ({ db, log }: Pick<ChangeLog, 'db' | 'log'>): AsyncDisposable =>
  runPeriodically(PRUNE_ENDED_MS, () =>
    pruneEnded(db).catch((err: unknown) => log.warn({ err }, 'ended sessions not removed')),
  )
