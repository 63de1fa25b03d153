import { Fault } from '@overlay/rpc'

/** A failed statement: the error for the caller, and whether its connection is still usable. */
export interface Failure {
  readonly error: unknown
  readonly connectionIsLost: boolean
}

/** Maps an unavailable database and a repeated conflict to a 503, a statement that takes too long to a timeout. */
export function failureOf(err: unknown): Failure {
  if (err instanceof Fault || !(err instanceof Error)) return { error: err, connectionIsLost: false }
  const { code = '' } = err as { code?: string }
  if (code === '57014') return { error: new Fault('TIMEOUT', undefined, err), connectionIsLost: false }
  if (err.message === 'Query read timeout')
    return { error: new Fault('TIMEOUT', undefined, err), connectionIsLost: true }
  if (isConflict(err))
    return {
      error: new Fault('UNAVAILABLE', 'conflicting changes by others, try again', err),
      connectionIsLost: false,
    }
  if (unavailable.test(code) || lost.test(err.message) || err.message === STALE_PLAN)
    return { error: new Fault('UNAVAILABLE', undefined, err), connectionIsLost: true }
  return { error: err, connectionIsLost: false }
}

/** A deadlock or a serialization failure: the server has rolled back the transaction. It may succeed when repeated. */
export const isConflict = (err: unknown): boolean =>
  err instanceof Error && conflicts.has((err as { code?: string }).code ?? '')

const conflicts = new Set(['40P01', '40001'])

/**
 * The server has ended the connection by order of its administrator, and rolled back: it says so only before a commit.
 * Or the connection was lost before the statement was sent.
 */
export function wasEnded(err: unknown): boolean {
  const cause = err instanceof Fault ? err.cause : err
  if (!(cause instanceof Error)) return false
  return (cause as { code?: string }).code === '57P01' || unsent.test(cause.message)
}

const unsent = /^Client has encountered a connection error/

/** Transient: the database is unavailable or late, and the outcome of the statement is unknown. */
export const isAway = (err: unknown): boolean =>
  err instanceof Fault && (err.code === 'UNAVAILABLE' || err.code === 'TIMEOUT')

/** The same of an error of the driver. Errors of files, which have a path, share some codes. */
export const isUnavailable = (err: unknown): boolean =>
  isAway(failureOf(err).error) && !(err instanceof Error && 'path' in err)

// of the server: connection exceptions, a refused role or password, no such database, out of resources, shut down, ended
// by the server, read-only after a failover; of the network: refused, reset, unreachable, no such host; of TLS, such as
// an expired certificate
const unavailable =
  /^(08...|28...|3D000|53...|57P0[1-5]|25P03|25006|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT|CERT_\w+|ERR_TLS_\w+|ERR_SSL_.+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|UNABLE_TO_\w+)$/

/** Messages of the driver, which have no code. */
const lost =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/

/** A migration changed a table under a prepared statement: a new connection prepares it again. */
const STALE_PLAN = 'cached plan must not change result type'
