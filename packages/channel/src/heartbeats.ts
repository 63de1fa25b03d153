import { encodeUint64 } from './headers.js'
import { type Headers, headerKey } from './message.js'

/** The heartbeats of a channel. Both sides send a time stamp periodically, and the other side returns it. */
export interface Heartbeats {
  /** Reads the heartbeats that a received message carries. */
  receive(headers: Headers): void
  /** Whether the next message should be sent at once, because it carries an answer. */
  hasAnswer(): boolean
  /** Headers to add to the next message. */
  take(): (readonly [number, Buffer])[]
  /** Round trip of the last answered heartbeat. */
  latencyMs(): number | undefined
  stop(): void
}

/** A heartbeat may ride on an answer after this part of the interval, and is due by timer only after the second. */
const EARLY = 0.5
const LATE = 0.9

/** Calls `beat` once per interval. Intervals of different channels start at random times, so that they spread. */
export function startHeartbeats(intervalMs: number, beat: (isDue: boolean) => void): Heartbeats {
  let isDue = false
  let answer: Buffer | undefined
  let sent: Buffer | undefined
  let sentAt = Number.NEGATIVE_INFINITY
  let latency: number | undefined

  const tick = (): void => {
    isDue ||= performance.now() - sentAt >= LATE * intervalMs
    beat(isDue)
  }
  const isOff = intervalMs === Number.POSITIVE_INFINITY
  let timer = isOff ? undefined : setTimeout(start, Math.random() * intervalMs)
  function start(): void {
    timer = setInterval(tick, intervalMs)
    tick()
  }

  return {
    receive(headers) {
      const returned = headers.get(headerKey.heartbeatResponse)
      if (returned && sent?.equals(returned)) {
        latency = performance.now() - sentAt
        sent = undefined
      }
      const stamp = headers.get(headerKey.heartbeat)
      if (!stamp) return
      answer = Buffer.from(stamp)
      isDue ||= !isOff && performance.now() - sentAt >= EARLY * intervalMs
    },
    hasAnswer: () => answer !== undefined,
    take() {
      const headers: (readonly [number, Buffer])[] = []
      if (answer) headers.push([headerKey.heartbeatResponse, answer])
      answer = undefined
      if (!isDue) return headers
      isDue = false
      sentAt = performance.now()
      sent = encodeUint64(unixNanoseconds(performance.timeOrigin + sentAt))
      headers.push([headerKey.heartbeat, sent])
      return headers
    },
    latencyMs: () => latency,
    stop: () => clearTimeout(timer),
  }
}

/** Exact to a microsecond. */
const unixNanoseconds = (ms: number): bigint => BigInt(Math.round(ms * 1000)) * 1000n
