import type { DestinationStream } from 'pino'
import sonicBoom from 'sonic-boom'
import { LOG_FLUSH_MS, LOG_LAST_FLUSH_MS, LOG_UNWRITTEN_BYTES, LOG_WRITE_BYTES } from './limits.js'

/** A destination of log lines. */
export interface LogOutput extends DestinationStream {
  /** Writes the rest. Gives up on a reader that takes nothing for a second. */
  flushSync(): void
}

/** Writes lines in the background, and the rest at exit. After the reader has closed, lines are dropped. */
export function openLogOutput(fd: number): LogOutput {
  const out = new sonicBoom.SonicBoom({
    fd,
    minLength: LOG_WRITE_BYTES,
    periodicFlush: LOG_FLUSH_MS,
    maxLength: LOG_UNWRITTEN_BYTES,
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
      untilMs = performance.now() + LOG_LAST_FLUSH_MS
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
