import { appendFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Load } from './load.js'
import { measure, type Round } from './measure.js'
import type { Options, RunningController } from './options.js'
import type { Bench, Scenario } from './scenario.js'

/** A controller that is measured. */
export interface Side {
  /** 'ours', 'other', or 'of N' for that many processes of each component. */
  readonly name: string
  readonly bench: Bench
  readonly running: RunningController
}

/** One round of each controller, directly after each other. */
export interface Turn {
  /** In the order of the sides. */
  readonly rounds: readonly Round[]
}

const WARM_UP_SECONDS = 4
const BETWEEN_ROUNDS_MS = 100

/** The turns after a first one that does not count: it compiles code and fills caches. */
export async function measureInTurns(
  scenario: Scenario,
  sides: readonly Side[],
  { repeat, seconds, json, ...options }: Pick<Options, 'repeat' | 'seconds' | 'json' | 'concurrency'>,
): Promise<Turn[]> {
  const concurrency = scenario.concurrency ?? options.concurrency
  const turns: Turn[] = []
  for (let turn = 0; turn <= repeat; turn += 1) {
    const length = turn === 0 ? Math.max(seconds, WARM_UP_SECONDS) : seconds
    const run = async (
      load: Load,
      { url, pids }: Pick<RunningController, 'url' | 'pids'>,
    ): Promise<Round> => {
      await pause(BETWEEN_ROUNDS_MS)
      return measure(scenario.name, load, { url, pids, concurrency, seconds: length })
    }
    const loads: Load[] = []
    for (const { bench } of sides) loads.push(await scenario.prepare(bench))
    const rounds: Round[] = []
    // each goes first in every other turn
    const order = [...sides.keys()]
    for (const at of turn % 2 === 0 ? order : order.reverse()) {
      const [load, side] = [loads[at], sides[at]]
      if (load && side) rounds[at] = await run(load, side.running)
    }
    if (turn === 0) continue
    turns.push({ rounds })
    if (json) await appendFile(json, lines(sides, rounds))
  }
  return turns
}

const lines = (sides: readonly Side[], rounds: readonly Round[]): string =>
  rounds.map((round, at) => `${JSON.stringify({ side: sides[at]?.name, ...round })}\n`).join('')
