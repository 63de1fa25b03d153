import { write, writeSync } from 'node:fs'
import {
  LOG_FLUSH_MS,
  LOG_LAST_FLUSH_MS,
  LOG_RETRY_MS,
  LOG_UNWRITTEN_CHARACTERS,
  LOG_WRITE_CHARACTERS,
} from './limits.js'

/** A destination of log lines. */
export interface Output {
  write(line: string): void
  /** Writes the rest, at the end of the process. Gives up on a reader that takes nothing for a second. */
  flushSync(): void
}

/**
 * Writes many lines at a time. Drops lines when the reader has closed: a process whose launcher was killed must still end.
 * Each request writes a line: with pino and sonic-boom 5 alone, a poll of a client costs 1.4 times as much.
 */
export function bufferedOutput(fd: number): Output {
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  let waiting = ''
  let current = Buffer.alloc(0) // taken out of `waiting`, not written yet
  let isInFlight = false
  let isBroken = false

  function start(): void {
    if (isInFlight || isBroken) return
    if (current.length === 0) {
      if (waiting === '') return
      current = Buffer.from(waiting)
      waiting = ''
    }
    isInFlight = true
    write(fd, current, (err, written) => {
      isInFlight = false
      if (err && !isBusy(err)) return drop()
      if (!err) current = current.subarray(written)
      if (err) setTimeout(start, LOG_RETRY_MS).unref()
      else if (current.length > 0 || waiting.length >= LOG_WRITE_CHARACTERS) start()
      else if (waiting !== '') startSoon()
    })
  }
  let isPlanned = false
  function startSoon(): void {
    if (isPlanned) return
    isPlanned = true
    setTimeout(() => {
      isPlanned = false
      start()
    }, LOG_FLUSH_MS).unref()
  }
  function drop(): void {
    isBroken = true
    waiting = ''
    current = Buffer.alloc(0)
  }

  function flushSync(): void {
    let left = Buffer.concat([isInFlight ? Buffer.alloc(0) : current, Buffer.from(waiting)])
    if (!isInFlight) current = Buffer.alloc(0)
    waiting = ''
    let late = performance.now() + LOG_LAST_FLUSH_MS
    while (left.length > 0 && !isBroken) {
      try {
        left = left.subarray(writeSync(fd, left))
        late = performance.now() + LOG_LAST_FLUSH_MS
      } catch (err) {
        if (isBusy(err) && performance.now() < late) Atomics.wait(sleeper, 0, 0, LOG_RETRY_MS)
        else drop()
      }
    }
  }

  process.on('exit', flushSync)
  return {
    write(line) {
      if (isBroken || waiting.length > LOG_UNWRITTEN_CHARACTERS) return
      waiting += line
      if (waiting.length >= LOG_WRITE_CHARACTERS) start()
      else startSoon()
    },
    flushSync,
  }
}

const isBusy = (err: unknown): boolean => (err as NodeJS.ErrnoException).code === 'EAGAIN'
