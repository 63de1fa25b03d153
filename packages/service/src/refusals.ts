import { boundedLines, boundedPerSource, type LineLog, printable } from '@overlay/process'
import { type Context, sourceOf, traceIdOf } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import { AUDIT_LIMITS, REFUSED_CHARACTERS } from './limits.js'

/** What is known of a client that is refused. Never a password, code or token. */
export interface Refused {
  readonly method: string
  readonly reason: string
  /** As the client sent it: it may not exist. */
  readonly username?: string | undefined
  readonly identityId?: string | undefined
  readonly identityName?: string | undefined
  readonly apiSessionId?: string | undefined
  readonly enrollmentId?: string | undefined
  /** Of the certificate that was presented, verified or not. */
  readonly fingerprint?: string | undefined
  readonly subject?: string | undefined
  /** Of an external token, verified or not. */
  readonly issuer?: string | undefined
  readonly kid?: string | undefined
  readonly signerId?: string | undefined
  readonly signer?: string | undefined
  /** Of an external token for another audience: its audiences, and the one that is expected. */
  readonly audience?: string | undefined
  readonly expectedAudience?: string | undefined
  /** What the reason leaves open. */
  readonly detail?: string | undefined
  /** Why a second token of the request is refused, too. */
  readonly otherToken?: string | undefined
}

/** Logs the refusal of a client. The client does not learn the reason. */
export type NoteRefusal = (context: Context, refused: Refused) => void

/** One line for each refusal, within limits; texts of the client are bounded and without control characters. */
export function openRefusals(log: LineLog, message: string): NoteRefusal {
  const write = boundedLines(log, message)
  return (context, refused) => {
    const { requestId, sourceAddress } = context
    const origin = { sourceAddress, requestId, traceId: traceIdOf(context) }
    write(sourceOf(sourceAddress), { ...printed(refused), ...origin })
  }
}

const printed = (refused: Partial<Refused>): object =>
  Object.fromEntries(
    Object.entries(refused).map(([name, text]: [string, string | undefined]) => [
      name,
      text && printable(text, REFUSED_CHARACTERS),
    ]),
  )

/**
 * Also adds refusals to the audit, about the identity if it is known. Not the name as typed: it may be a password.
 * Beyond the limits, only log and metrics have them.
 */
export function auditedRefusals(
  note: NoteRefusal,
  auditLater: (context: Context, rows: readonly RowChange[]) => void,
): NoteRefusal {
  const isWithin = boundedPerSource(AUDIT_LIMITS)
  return (context, refused) => {
    note(context, refused)
    if (!isWithin(sourceOf(context.sourceAddress))) return
    const { identityId = '', identityName: name, username: _typed, ...facts } = refused
    const after = { name, ...printed(facts) }
    auditLater(context, [{ kind: 'login-refusals', id: identityId, before: null, after }])
  }
}
