/** A connection between two routers. */
export interface Link {
  readonly id: string
  /** The router that dialed. */
  readonly sourceId: string
  readonly destinationId: string
  readonly protocol: string
  readonly dialAddress: string
  /** How often the source has dialed. */
  readonly iteration: number
  readonly staticCost: number
  readonly sourceLatencyMs: number
  readonly destinationLatencyMs: number
  /** Taken out of service by an administrator. */
  readonly isDown: boolean
  /** Both routers have reported it. Absent: a replica of the former release does not say. */
  readonly isConfirmed?: boolean
}

/** Until its routers report a latency, a link costs more than any measured one. */
export const INITIAL_LATENCY_MS = 65_000

/** Whether circuits may use it. */
export const isUsable = ({ isDown, isConfirmed = true }: Link): boolean => isConfirmed && !isDown

export const linkCost = ({ staticCost, sourceLatencyMs, destinationLatencyMs }: Link): number =>
  staticCost + Math.floor(sourceLatencyMs) + Math.floor(destinationLatencyMs)

const SMOOTHING = 0.5
const LEAST_CHANGE_MS = 1
const LEAST_CHANGE = 0.1

/**
 * The latency to store after a measurement: a moving average, in milliseconds. Undefined: the stored one is close
 * enough.
 */
export function nextLatency(storedMs: number, measuredMs: number): number | undefined {
  if (storedMs === INITIAL_LATENCY_MS) return measuredMs
  const next = storedMs + (measuredMs - storedMs) * SMOOTHING
  const change = Math.abs(next - storedMs)
  return change >= LEAST_CHANGE_MS && change >= storedMs * LEAST_CHANGE ? next : undefined
}
