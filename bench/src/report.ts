import type { Round } from './measure.js'
import type { Scenario } from './scenario.js'

const columns = [
  'scenario',
  'req/s',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'CPU ms',
  '× floor',
  'goal',
  '',
  'others',
  'by part',
]
const widths = [20, 8, 8, 8, 8, 8, 8, 6, 7, 7, 0]

export const heading = (): string => lineOf(columns)

/** The round with the median of CPU. */
export function medianOf(rounds: readonly Round[]): Round | undefined {
  const sorted = [...rounds].sort((a, b) => (a.cpuMs ?? 0) - (b.cpuMs ?? 0))
  return sorted[Math.floor((sorted.length - 1) / 2)]
}

/** The median round; all CPU figures, from least to most, in brackets. `floorMs` is the CPU of the bare server. */
export function lineFor(
  { name, goalMs, goalFloors }: Pick<Scenario, 'name' | 'goalMs' | 'goalFloors'>,
  rounds: readonly Round[],
  floorMs: number | undefined,
): string {
  const median = medianOf(rounds)
  if (!median) return lineOf([name, 'not measured'])
  const { perSecond, p50Ms, p95Ms, p99Ms, cpuMs, cpuMsByPart, otherCores } = median
  const limitMs = goalMs ?? (goalFloors !== undefined && floorMs ? goalFloors * floorMs : undefined)
  const verdict = limitMs === undefined || cpuMs === undefined ? '' : cpuMs <= limitMs ? 'met' : 'missed'
  const parts = Object.entries(cpuMsByPart)
    .filter(([, ms]) => ms > 0.0005)
    .sort(([, a], [, b]) => b - a)
    .map(([part, ms]) => `${part} ${digits(ms)}`)
  const spread = rounds
    .map((round) => round.cpuMs ?? 0)
    .sort((a, b) => a - b)
    .map(digits)
    .join(' ')
  const failures = rounds.flatMap((round) => Object.entries(round.failures))
  return lineOf([
    name,
    perSecond.toFixed(0),
    digits(p50Ms),
    digits(p95Ms),
    digits(p99Ms),
    cpuMs === undefined ? '' : digits(cpuMs),
    cpuMs === undefined || !floorMs ? '' : (cpuMs / floorMs).toFixed(1),
    goalFloors === undefined ? String(goalMs ?? '') : `${goalFloors} ×`,
    verdict,
    otherCores.toFixed(1),
    `${parts.join(', ')} [${spread}]${failures.map(([status, count]) => ` ${count} times ${status}!`).join()}`,
  ])
}

const digits = (ms: number): string => (ms >= 10 ? ms.toFixed(1) : ms >= 1 ? ms.toFixed(2) : ms.toFixed(3))

const lineOf = (cells: readonly string[]): string =>
  cells
    .map((cell, at) => (at === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[at] ?? 0)))
    .join('  ')
    .trimEnd()
