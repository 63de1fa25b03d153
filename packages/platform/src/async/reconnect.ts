import { Fault } from '@overlay/rpc'
import { type BackoffOptions, openBackoff } from './backoff.js'
import { openLimit } from './limit.js'

export interface ReconnectOptions extends BackoffOptions {
  readonly signal: AbortSignal
  /** One connection. When it returns, the next one begins at once; when it throws, after a pause. */
  connect(connection: Connection): Promise<void>
  /** `isFirst`: since the last sign that a connection works. */
  onFailure(err: unknown, isFirst: boolean): void
}

export interface Connection {
  /** The connection works: the next failure is the first again, and its pause the shortest. */
  works(): void
}

/** Connects again and again until the signal is aborted. */
export async function reconnect({ signal, connect, onFailure, ...pauses }: ReconnectOptions): Promise<void> {
  const backoff = openBackoff(pauses)
  while (!signal.aborted) {
    try {
      await connect({ works: backoff.reset })
    } catch (err) {
      if (signal.aborted) return
      onFailure(err, backoff.isReset)
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
  if (limit.isOver) throw new Fault('UNAVAILABLE', undefined, new Error('the stream is silent'))
}
