import { metrics } from '@overlay/process'
import { type Context, type Fault, ownContext, paused } from '@overlay/rpc'
import type { ChangeLog, RowChange } from '@overlay/store/change-log'
import { withDeadline } from '@overlay/store/change-log'
import { countWrongGuess, type Guess, guessHistory, pauseOf, type Scope } from '@overlay/store/guesses'
import type { Logger } from 'pino'
import { openRefusals, type Refused } from './refusals.js'

/** Of whom the secret is. An account that does not exist has no identity. */
export type PausedAccount = Pick<Refused, 'username' | 'identityId' | 'identityName' | 'apiSessionId'>

/** Tells administrators of what clients cause without a session: of pauses that begin by metric, log and audit. */
export interface PauseReports extends AsyncDisposable {
  /** Counts and logs them. */
  report(context: Context, guess: Guess, begun: readonly Scope[], account?: PausedAccount): void
  /** Writes rows for the audit behind the answer, whose time must not reveal whether the account exists. */
  auditLater(context: Context, rows: readonly RowChange[]): void
}

/** Pauses that begin, for the audit. None of accounts that do not exist. */
export const pauseRows = (
  { kind, source }: Guess,
  begun: readonly Scope[],
  { identityId, identityName }: PausedAccount = {},
): RowChange[] =>
  begun.flatMap((scope) => {
    const [id, name] = scope === 'source' ? [source] : [identityId, identityName]
    return id === undefined
      ? []
      : [{ kind: 'guess-pauses', id, before: null, after: { name, kind, scope, source } }]
  })

export function openPauseReports(changeLog: ChangeLog, log: Logger): PauseReports {
  const note = openRefusals(log, 'guesses paused')
  const writing = new Set<Promise<unknown>>()

  async function write(context: Context, rows: readonly RowChange[]): Promise<void> {
    try {
      const { caller, requestId, traceparent, sourceAddress } = context
      const own = {
        ...ownContext(new AbortController().signal),
        caller,
        requestId,
        traceparent,
        sourceAddress,
      }
      await changeLog.write(withDeadline(own), async () => ({ result: undefined, changes: rows }))
    } catch (err) {
      log.warn({ err, requestId: context.requestId }, 'not in the audit')
    }
  }

  return {
    report(context, { kind }, begun, account) {
      for (const scope of begun) {
        metrics.guessesPaused.inc({ kind, scope })
        note(context, { method: kind, reason: scope, ...account })
      }
    },

    auditLater(context, rows) {
      if (rows.length === 0) return
      const written = write(context, rows).finally(() => writing.delete(written))
      writing.add(written)
    },

    async [Symbol.asyncDispose]() {
      await Promise.all(writing)
    },
  }
}

/**
 * Counts a bad secret that is too long to be guessed. Returns the fault of the answer: the refusal, or from the limit on
 * SERVER_TOO_MANY_REQUESTS. Such secrets are checked before their pauses, so that good ones are not refused for the
 * bad ones of others behind the same address.
 */
export async function afterBadToken(
  { changeLog, pauseReports }: { readonly changeLog: ChangeLog; readonly pauseReports: PauseReports },
  context: Context,
  guess: Guess,
  refusal: Fault,
): Promise<Fault> {
  const history = await guessHistory(changeLog.db, guess)
  const pause = pauseOf(guess.limits, history)
  if (pause) return paused(pause.seconds)
  const begun = await countWrongGuess(changeLog.db, guess, history)
  pauseReports.report(context, guess, begun)
  pauseReports.auditLater(context, pauseRows(guess, begun))
  return refusal
}
