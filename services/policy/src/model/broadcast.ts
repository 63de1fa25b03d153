import { openAlarm } from '@overlay/process/async'
import { Fault, onAbort } from '@overlay/rpc'
import { STALLED_MS, WINDOW_BYTES } from '../limits.js'

/** Parts that are made once, as they are read, for several readers. */
export interface Broadcast {
  /** Reads from the first part. Undefined: it is no longer kept. */
  join(signal: AbortSignal): AsyncGenerator<Buffer, void> | undefined
  /** Resolves when all parts are made. */
  readonly done: Promise<void>
}

interface Reader {
  next: number
  /** Of its last step. */
  since: number
}

/**
 * Keeps the parts that some reader has still to read, at most WINDOW_BYTES. A reader that stops the others for STALLED_MS
 * is dropped.
 */
export function openBroadcast(
  source: AsyncIterable<Buffer>,
  now: () => number = () => performance.now(),
): Broadcast {
  const readers = new Set<Reader>()
  const kept: (Buffer | undefined)[] = []
  let first = 0 // of the kept parts
  let bytes = 0
  let ended = false
  let failure: unknown
  const moved = openAlarm()

  function release(): void {
    const least = Math.min(kept.length, ...[...readers].map(({ next }) => next))
    // until all is made, others may join as long as the window permits
    while (first < least && (bytes > WINDOW_BYTES / 2 || ended)) {
      bytes -= kept[first]?.length ?? 0
      kept[first++] = undefined
    }
  }

  async function make(): Promise<void> {
    for await (const part of source) {
      kept.push(part)
      bytes += part.length
      moved.ring()
      release()
      while (bytes > WINDOW_BYTES && readers.size > 0) {
        await moved.sleep(never, STALLED_MS)
        release()
        if (bytes <= WINDOW_BYTES) break
        for (const reader of readers) if (now() - reader.since >= STALLED_MS) readers.delete(reader)
        release()
      }
      if (readers.size === 0) throw new Fault('UNAVAILABLE')
    }
  }

  function leave(reader: Reader): void {
    readers.delete(reader)
    release()
    moved.ring()
  }

  async function* read(reader: Reader, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const stop = onAbort(signal, () => leave(reader)) // its generator may never be resumed
    try {
      while (!signal.aborted) {
        if (!readers.has(reader)) throw new Fault('UNAVAILABLE', 'the reader is too slow')
        const part = kept[reader.next]
        if (part) {
          reader.next++
          reader.since = now()
          yield part
          release()
          moved.ring()
        } else if (failure) throw failure
        else if (ended) return
        else await moved.sleep(signal)
      }
    } finally {
      stop()
      leave(reader)
    }
  }

  return {
    join(signal) {
      if (first > 0 || failure) return undefined
      const reader = { next: 0, since: now() }
      readers.add(reader)
      return read(reader, signal)
    },
    done: Promise.resolve()
      .then(make)
      .catch((err: unknown) => {
        failure = err
      })
      .then(() => {
        ended = true
        release()
        moved.ring()
      }),
  }
}

const never = new AbortController().signal
