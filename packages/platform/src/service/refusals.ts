import { type Context, sourceOf, traceIdOf } from '@overlay/rpc'
import { boundedLines, type LineLog } from '../process/bounded-lines.js'
import { printable } from '../process/printable.js'

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
  /** What the reason leaves open. */
  readonly detail?: string | undefined
  /** Why a second token of the request is refused, too. */
  readonly otherToken?: string | undefined
}

/** Logs the refusal of a client. The client does not learn the reason. */
export type NoteRefusal = (context: Context, refused: Refused) => void

const LONGEST = 128

/** One line for each refusal, within limits; texts of the client are bounded and without control characters. */
export function openRefusals(log: LineLog, message: string): NoteRefusal {
  const write = boundedLines(log, message)
  return (context, refused) => {
    const { requestId, sourceAddress } = context
    const facts = Object.entries(refused).map(([name, text]: [string, string | undefined]) => [
      name,
      text && printable(text, LONGEST),
    ])
    write(sourceOf(sourceAddress), {
      ...Object.fromEntries(facts),
      sourceAddress,
      requestId,
      traceId: traceIdOf(context),
    })
  }
}
