import { setTimeout as pause } from 'node:timers/promises'
import { between, processesOf, proportionalMib, sumOf, timesOf } from './processor-time.js'
import { isProduct } from './product.js'
import { digits } from './report.js'
import type { Side } from './turns.js'

/** Longer than streams are watched closely after their last use, and than autovacuum takes to notice what was seeded. */
const SETTLE_SECONDS = 75
const SECONDS = 30

/**
 * Prints CPU and memory of each component of each controller while it has no requests, all at the same time: after it was
 * filled, and again after a restart where it was started here.
 */
export async function measureRest(sides: readonly Side[], print: (line: string) => void): Promise<void> {
  print('after it was filled')
  await measureOnce(sides, print)
  const restarted: Side[] = []
  for (const side of sides)
    if (isProduct(side.running)) {
      await side.running.restart()
      restarted.push(side)
    }
  if (restarted.length === 0) return
  print('\nafter a restart')
  await measureOnce(restarted, print)
}

async function measureOnce(sides: readonly Side[], print: (line: string) => void): Promise<void> {
  await pause(SETTLE_SECONDS * 1000)
  const before = sides.map(({ running }) => timesOf(running.pids))
  await pause(SECONDS * 1000)
  for (const [at, { name, running }] of sides.entries()) {
    const used = between(before[at] ?? new Map(), timesOf(running.pids))
    const [sizes, counts] = [proportionalMib(running.pids), processesOf(running.pids)]
    print(`${name}: ${digits(sumOf(used) / SECONDS)} ms/s, ${digits(sumOf(sizes))} MiB (proportional)`)
    for (const [component, ms] of [...used].sort(([, a], [, b]) => b - a)) {
      const processes = `${counts.get(component) ?? 0} process(es)`
      print(
        `  ${component.padEnd(16)} ${digits(ms / SECONDS)} ms/s, ${digits(sizes.get(component) ?? 0)} MiB, ${processes}`,
      )
    }
  }
}
