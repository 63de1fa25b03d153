import { Fault } from '@overlay/rpc'
import { type BackoffOptions, openBackoff } from './backoff.js'
import { openLimit } from './limit.js'
import { openOutage } from './outage.js'

export interface ReconnectOptions extends BackoffOptions {
  readonly signal: AbortSignal
  /** One connection. When it returns, the next one begins at once; when it throws, after a pause. */
  connect(connection: Connection): Promise<void>
  /** Called after each failure. */
  onFailure?(err: unknown): void
  /** Called once when no connection has worked for a while: a warning for operators. */
  onOutage(err: unknown): void
}

export interface Connection {
  /** The connection works: an outage has ended, and the next pause is the shortest. */
  works(): void
}

/** Connects again and again until the signal is aborted. */
export async function reconnect({
  signal,
  connect,
  onFailure,
  onOutage,
  ...pauses
}: ReconnectOptions): Promise<void> {
  const backoff = openBackoff(pauses)
  using outage = openOutage(onOutage)
  const works = (): void => {
    backoff.reset()
    outage.works()
  }
  while (!signal.aborted) {
    try {
      await connect({ works })
    } catch (err) {
      if (signal.aborted) return
      onFailure?.(err)
      outage.failed(err)
      await backoff.pause(signal)
    }
  }
}

/** The messages of a stream. Throws when the stream is silent for `silenceMs`: a peer may hang without an error. */
export async function* withWatchdog<T>(
  silenceMs: number,
  open: (signal: AbortSignal) => AsyncIterable<T>,
  ...signals: readonly AbortSignal[]
): AsyncIterable<T> {
  using limit = openLimit(silenceMs, ...signals)
  for await (const message of open(limit.signal)) {
    yield message
    limit.refresh()
  }
  if (limit.isOver()) throw new Fault('UNAVAILABLE', undefined, new Error('the stream is silent'))
}
