import { write, writeSync } from 'node:fs'

/** A destination of log lines. */
export interface Output {
  write(line: string): void
  /** Writes the rest, at the end of the process. Gives up on a reader that takes nothing for a second. */
  flushSync(): void
}

const ENOUGH = 64 * 1024 // characters that are written at once
const LATEST_MS = 100
const MOST = 16 * 1024 * 1024 // characters that wait for a slow reader; further lines are dropped
const AGAIN_MS = 10
const LAST_MS = 1000

/**
 * Writes many lines at a time, as a write costs as much as a request. Drops lines when the reader is gone: a process
 * whose launcher was killed must still end. (The synchronous flush of sonic-boom 4.2 repeats a write to a closed pipe
 * forever.)
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
      if (err) setTimeout(start, AGAIN_MS).unref()
      else if (current.length > 0 || waiting.length >= ENOUGH) start()
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
    }, LATEST_MS).unref()
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
    let late = performance.now() + LAST_MS
    while (left.length > 0 && !isBroken) {
      try {
        left = left.subarray(writeSync(fd, left))
        late = performance.now() + LAST_MS
      } catch (err) {
        if (isBusy(err) && performance.now() < late) Atomics.wait(sleeper, 0, 0, AGAIN_MS)
        else drop()
      }
    }
  }

  process.on('exit', flushSync)
  return {
    write(line) {
      if (isBroken || waiting.length > MOST) return
      waiting += line
      if (waiting.length >= ENOUGH) start()
      else startSoon()
    },
    flushSync,
  }
}

const isBusy = (err: unknown): boolean => (err as NodeJS.ErrnoException).code === 'EAGAIN'
