import type { Round } from './measure.js'
import type { Scenario } from './scenario.js'
import type { Side, Turn } from './turns.js'

const columns = [
  'scenario',
  '',
  'req/s',
  'p50 ms',
  'p95 ms',
  'p99 ms',
  'CPU ms',
  'ours / other',
  '',
  'others',
  'CPU ms by process',
]
const widths = [20, 5, 7, 7, 7, 7, 7, 12, 13, 6, 0]

export const heading = (): string => lineOf(columns)

/** Ratios within each turn. */
export interface Ratios {
  readonly median: number
  readonly least: number
  readonly most: number
}

export function ratiosOf(
  turns: readonly Turn[],
  ratio: (turn: Turn) => number | undefined,
): Ratios | undefined {
  const sorted = turns
    .map(ratio)
    .filter((value) => value !== undefined)
    .sort((a, b) => a - b)
  const [least, most, median] = [sorted[0], sorted.at(-1), sorted[Math.floor((sorted.length - 1) / 2)]]
  return least === undefined || most === undefined || median === undefined
    ? undefined
    : { least, most, median }
}

/** A line for each controller: the round with the median of CPU, and the ratios of all. */
export const linesFor = ({ name }: Scenario, sides: readonly Side[], turns: readonly Turn[]): string =>
  sides
    .map((side, at) => {
      const ratios =
        at === 0 ? undefined : ratiosOf(turns, ({ rounds }) => quotient(rounds[0]?.cpuMs, rounds[at]?.cpuMs))
      const rounds = turns.flatMap((turn) => turn.rounds[at] ?? [])
      const round = medianOf(rounds)
      return lineOf([
        ...cellsOf(at === 0 ? name : '', side.name, round),
        ...(ratios ? textOf(ratios) : ['', '']),
        round?.otherCores.toFixed(1) ?? '',
        `${componentsOf(round)}${failuresOf(rounds)}`,
      ])
    })
    .join('\n')

/** The round with the median of CPU. */
function medianOf(rounds: readonly Round[]): Round | undefined {
  const sorted = [...rounds].sort((a, b) => (a.cpuMs ?? 0) - (b.cpuMs ?? 0))
  return sorted[Math.floor((sorted.length - 1) / 2)]
}

const quotient = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || !b ? undefined : a / b

function cellsOf(name: string, side: string, round: Round | undefined): string[] {
  if (!round) return [name, side, 'not measured']
  const { perSecond, p50Ms, p95Ms, p99Ms, cpuMs } = round
  const cpu = cpuMs === undefined ? '' : digits(cpuMs)
  return [name, side, perSecond.toFixed(0), digits(p50Ms), digits(p95Ms), digits(p99Ms), cpu]
}

const textOf = ({ median, least, most }: Ratios): string[] => [
  digits(median),
  `${digits(least)}–${digits(most)}`,
]

function componentsOf(round: Round | undefined): string {
  return Object.entries(round?.cpuMsByComponent ?? {})
    .filter(([, ms]) => ms > 0.01)
    .sort(([, a], [, b]) => b - a)
    .map(([component, ms]) => `${component} ${digits(ms)}`)
    .join(', ')
}

function failuresOf(rounds: readonly Round[]): string {
  const counts = new Map<string, number>()
  for (const [status, count] of rounds.flatMap(({ failures }) => Object.entries(failures)))
    counts.set(status, (counts.get(status) ?? 0) + count)
  return [...counts].map(([status, count]) => `; ${count} times ${status}!`).join('')
}

export const digits = (value: number): string =>
  value >= 100
    ? value.toFixed(0)
    : value >= 10
      ? value.toFixed(1)
      : value >= 1
        ? value.toFixed(2)
        : value.toFixed(3)

const lineOf = (cells: readonly string[]): string =>
  cells
    .map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
    .join('  ')
    .trimEnd()
