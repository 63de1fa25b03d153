import type { DestinationStream } from 'pino'
import sonicBoom from 'sonic-boom'

/** A destination of log lines. */
export interface LogOutput extends DestinationStream {
  /** Writes the rest. Gives up on a reader that takes nothing for a second. */
  flushSync(): void
}

/** Fewer bytes wait for the next flush: a write costs about as much as a request. */
const MIN_WRITE_BYTES = 4096
const FLUSH_EVERY_MS = 100
/** Unwritten text of a slow reader; further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 16 * 1024 * 1024
/** Of the last write to a reader that takes nothing. */
const FLUSH_LIMIT_MS = 1000

/** Writes lines in the background, and the rest at exit. After the reader has closed, lines are dropped. */
export function openLogOutput(fd: number): LogOutput {
  const out = new sonicBoom.SonicBoom({
    fd,
    minLength: MIN_WRITE_BYTES,
    periodicFlush: FLUSH_EVERY_MS,
    maxLength: MAX_UNWRITTEN_BYTES,
    retryEAGAIN: () => performance.now() < untilMs,
  })
  let untilMs = Number.POSITIVE_INFINITY
  let isClosed = false
  const close = (): void => {
    isClosed = true
    out.removeAllListeners().on('error', () => undefined) // of writes that are under way
  }
  out.on('error', close)
  const output: LogOutput = {
    write(line) {
      if (!isClosed) out.write(line)
    },
    flushSync() {
      if (isClosed) return
      untilMs = performance.now() + FLUSH_LIMIT_MS
      try {
        out.flushSync()
      } catch {
        close() // the process must end, also after its launcher was killed
      }
      untilMs = Number.POSITIVE_INFINITY
    },
  }
  process.on('exit', output.flushSync)
  return output
}
