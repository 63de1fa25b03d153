import type { LinkMetrics } from '@overlay/channel'
import { nextLatency } from '../domain/link.js'
import { MOST_LATENCY_MS } from '../limits.js'
import type { LinkAcceptance, LinkLatency, LinkRow } from '../store/link.js'

const NS_PER_MS = 1e6

/** What a router has accepted by its metrics: links of others that wait for its word. */
export const acceptedLinks = (
  routerId: string,
  links: readonly LinkRow[],
  { histograms }: LinkMetrics,
): readonly LinkAcceptance[] =>
  links
    .filter(
      ({ id, destinationId, isConfirmed }) =>
        isConfirmed === false && destinationId === routerId && histograms.has(`link.${id}.latency`),
    )
    .map(({ sourceId }) => ({ listenerId: routerId, dialerId: sourceId }))

/** The latencies to store after a router has reported its metrics, out of its links. */
export function latenciesOf(
  routerId: string,
  links: readonly LinkRow[],
  { histograms }: LinkMetrics,
): readonly LinkLatency[] {
  /** Undefined: not measured, or no latency. */
  const meanMs = (name: string): number | undefined => {
    const ms = (histograms.get(name)?.mean ?? Number.NaN) / NS_PER_MS
    return ms >= 0 && ms <= MOST_LATENCY_MS ? ms : undefined
  }
  return links.flatMap((link) => {
    const measured = meanMs(`link.${link.id}.latency`)
    if (measured === undefined) return []
    const isSource = link.sourceId === routerId
    const stored = isSource ? link.sourceLatencyMs : link.destinationLatencyMs
    const latencyMs = nextLatency(stored, measured + (meanMs(`link.${link.id}.queue_time`) ?? 0))
    return latencyMs === undefined
      ? []
      : [{ id: link.id, side: isSource ? 'source' : 'destination', latencyMs }]
  })
}
