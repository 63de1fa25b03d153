import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks'
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client'
import { LAG_MS } from './limits.js'

const NEVER_MS = 2 ** 31 - 1

const figures: Readonly<Record<string, (lag: RecordableHistogram) => number>> = {
  min: ({ min }) => min,
  max: ({ max }) => max,
  mean: ({ mean }) => mean,
  stddev: ({ stddev }) => stddev,
  p50: (lag) => lag.percentile(50),
  p90: (lag) => lag.percentile(90),
  p99: (lag) => lag.percentile(99),
}

/** The usual metrics of a Node process. Their own measurement of the event loop would be half of its CPU at rest. */
export function collectNodeMetrics(register: Registry): void {
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: NEVER_MS })
  measured ??= measureLag()
  const lag = measured
  const last = Object.keys(figures).at(-1)
  for (const [what, nanoseconds] of Object.entries(figures)) {
    const name = `nodejs_eventloop_lag_${what}_seconds`
    register.removeSingleMetric(name)
    const gauge = new Gauge({
      name,
      help: `Lag of the event loop since the metrics were last read: ${what}`,
      registers: [register],
      collect() {
        gauge.set(lag.count === 0 ? 0 : nanoseconds(lag) / 1e9)
        if (what === last) lag.reset()
      },
    })
  }
}

let measured: RecordableHistogram | undefined

/** In nanoseconds. */
function measureLag(): RecordableHistogram {
  const lag = createHistogram()
  let due = performance.now() + LAG_MS
  setInterval(() => {
    const at = performance.now()
    lag.record(Math.max(1, Math.round((at - due) * 1e6)))
    due = at + LAG_MS
  }, LAG_MS).unref()
  return lag
}
