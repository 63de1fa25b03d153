import { type Answers, drive, type Limits, type Load } from './load.js'
import { between, machineMs, ownMs, sumOf, type Times, timesOf } from './processor-time.js'

/** One measurement of a scenario. */
export interface Round {
  readonly scenario: string
  readonly answered: number
  readonly failures: Readonly<Record<string, number>>
  readonly perSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** CPU of all processes for one request; absent without process ids. */
  readonly cpuMs: number | undefined
  readonly cpuMsByComponent: Readonly<Record<string, number>>
  readonly driverMs: number
  /** Processors that neither the controller nor this program used, on average. */
  readonly otherCores: number
}

export interface MeasureOptions extends Limits {
  readonly pids: readonly number[]
}

export async function measure(scenario: string, load: Load, options: MeasureOptions): Promise<Round> {
  const { pids } = options
  const [times, machine, own, started] = [timesOf(pids), machineMs(), ownMs(), performance.now()]
  const answers = await drive(load, options)
  const wallMs = performance.now() - started
  const used = between(times, timesOf(pids))
  const [driver, all] = [ownMs() - own, machineMs() - machine]
  return {
    ...rates(answers, wallMs, used, driver),
    scenario,
    otherCores: Math.max(0, all - sumOf(used) - driver) / wallMs,
  }
}
function rates(
  { latency, failures }: Answers,
  wallMs: number,
  used: Times,
  driver: number,
): Omit<Round, 'scenario' | 'otherCores'> {
  const failed = [...failures.values()].reduce((sum, count) => sum + count, 0)
  const requests = Math.max(1, latency.count + failed)
  const percentile = (of: number): number => (latency.count === 0 ? 0 : latency.percentile(of) / 1000)
  return {
    answered: latency.count,
    failures: Object.fromEntries(failures),
    perSecond: (latency.count * 1000) / wallMs,
    p50Ms: percentile(50),
    p95Ms: percentile(95),
    p99Ms: percentile(99),
    cpuMs: used.size === 0 ? undefined : sumOf(used) / requests,
    cpuMsByComponent: Object.fromEntries([...used].map(([component, ms]) => [component, ms / requests])),
    driverMs: driver / requests,
  }
}
