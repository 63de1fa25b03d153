import { QUEUE_RECENT_MS } from '../limits.js'
import { labelIn, samplesOf } from '../processes/prometheus-text.js'

/** The metrics of one process. */
export interface ProcessMetrics {
  readonly name: string
  readonly text: string
}

/** Changes of another schema that a process has not applied. */
export interface Outstanding {
  readonly process: string
  readonly schema: string
  readonly changes: number
}

/** A queue that has refused tasks. */
export interface FullQueue {
  readonly process: string
  readonly queue: string
  readonly lastRefusedAt: string
}

/** Compares what each process has applied with the newest position that an owner knows. */
export function outstandingIn(metrics: readonly ProcessMetrics[]): readonly Outstanding[] {
  const heads = new Map<string, number>()
  for (const { text } of metrics)
    for (const { labels, value } of samplesOf(text, 'overlay_change_log_position')) {
      const schema = labelIn(labels, 'schema')
      heads.set(schema, Math.max(heads.get(schema) ?? 0, value))
    }
  return metrics.flatMap(({ name, text }) =>
    samplesOf(text, 'overlay_follow_position').flatMap(({ labels, value }) => {
      const schema = labelIn(labels, 'schema')
      const changes = (heads.get(schema) ?? 0) - value
      return changes > 0 ? [{ process: name, schema, changes }] : []
    }),
  )
}

/** Queues that have refused tasks within ten minutes. */
export const fullQueuesIn = (metrics: readonly ProcessMetrics[], now: number): readonly FullQueue[] =>
  metrics.flatMap(({ name, text }) =>
    samplesOf(text, 'overlay_queue_refused_timestamp_seconds')
      .filter(({ value }) => now - value * 1000 < QUEUE_RECENT_MS)
      .map(({ labels, value }) => ({
        process: name,
        queue: labelIn(labels, 'queue'),
        lastRefusedAt: new Date(value * 1000).toISOString(),
      })),
  )
