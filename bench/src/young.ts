import type { Floor } from './floor.js'
import { measure } from './measure.js'
import type { Options } from './options.js'
import { productOf } from './product.js'
import { digits } from './report.js'
import type { Scenario } from './scenario.js'
import { scenarios } from './scenarios.js'
import type { Side } from './turns.js'

/** Numbers of requests. The last stage shows the cost of a process that has run for some time. */
const stages = [500, 500, 1000, 1000, 3000, 2000]

/** Of cheaper ones, 500 requests take too few milliseconds to be measured. */
const measured = ['session-create', 'get-identity', 'create-identity', 'identity-by-name']
export const youngScenarios: readonly Scenario[] = scenarios.filter(({ name }) => measured.includes(name))

/** Prints what requests cost after a restart, as multiples of the bare server and of the last stage. */
export async function measureYoung(
  selected: readonly Scenario[],
  sides: readonly Side[],
  floor: Floor,
  { concurrency }: Pick<Options, 'concurrency'>,
  print: (line: string) => void,
): Promise<void> {
  for (const scenario of selected) {
    const loads = await Promise.all(sides.map(({ bench }) => scenario.prepare(bench)))
    for (const { running } of sides) await productOf(running).restart()
    const costs = sides.map((): number[] => [])
    const floors: number[] = []
    for (const amount of stages) {
      const limits = { concurrency, seconds: 1, amount }
      const bare = await measure('bare', floor.load(), { ...floor, concurrency, seconds: 1 })
      floors.push(bare.cpuMs ?? 0)
      for (const [at, { running }] of sides.entries()) {
        const load = loads[at]
        if (!load) continue
        const { url, pids } = running
        const { cpuMs = 0 } = await measure(scenario.name, load, { url, pids, ...limits })
        costs[at]?.push(cpuMs)
      }
    }
    // the same for all stages: a second of the bare server beside each would add its scatter
    const floorMs = floors.sort((a, b) => a - b)[Math.floor(floors.length / 2)] ?? 0
    for (const [at, { name }] of sides.entries()) {
      const ratios = (costs[at] ?? []).map((ms) => ms / floorMs)
      print(lineFor(scenario.name, name, ratios))
    }
  }
}

function lineFor(scenario: string, side: string, ratios: readonly number[]): string {
  const last = ratios.at(-1) ?? 1
  let from = 0
  const cells = ratios.map((ratio, at) => {
    const to = from + (stages[at] ?? 0)
    const text = `${from}–${to}: ${digits(ratio)} × bare, ${digits(ratio / last)} × last`
    from = to
    return text
  })
  return `${scenario}, ${side}\n  ${cells.join('\n  ')}`
}
