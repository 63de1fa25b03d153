import { appendFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { openApi } from './api.js'
import type { Floor } from './floor.js'
import type { Load } from './load.js'
import { measure, type Round } from './measure.js'
import type { Options, RunningController } from './options.js'
import type { Bench, Scenario } from './scenario.js'

/** A controller that is measured. */
export interface Side {
  /** 'ours', 'other', or 'of N' for that many processes of each part. */
  readonly name: string
  readonly bench: Bench
  readonly running: RunningController
}

/** One round of the floor and one of each controller, directly after each other. */
export interface Turn {
  readonly floor: Round
  /** In the order of the sides. */
  readonly rounds: readonly Round[]
}

const WARM_UP_SECONDS = 4
const BETWEEN_ROUNDS_MS = 100

/** The turns after a first one that does not count: it compiles code and fills caches. */
export async function measureInTurns(
  scenario: Scenario,
  sides: readonly Side[],
  floor: Floor,
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
    const bytes = scenario.floor === 'as-much' ? await bytesOfFirst(loads[0], sides[0]) : undefined
    const bare = await run(floor.load(loads[0], bytes), floor)
    const rounds: Round[] = []
    // each goes first in every other turn
    const order = [...sides.keys()]
    for (const at of turn % 2 === 0 ? order : order.reverse()) {
      const [load, side] = [loads[at], sides[at]]
      if (load && side) rounds[at] = await run(load, side.running)
    }
    if (turn === 0) continue
    turns.push({ floor: bare, rounds })
    if (json) await appendFile(json, lines(sides, bare, rounds))
  }
  return turns
}

async function bytesOfFirst(load: Load | undefined, side: Side | undefined): Promise<number> {
  const [first] = load && 'requests' in load ? load.requests : []
  if (!first || !side) throw new Error('there is no first answer')
  using api = openApi(side.bench.url, '', 1)
  const token = first.headers?.['zt-session']
  if (token) api.use(token)
  return await api.size(first.path)
}

const lines = (sides: readonly Side[], floor: Round, rounds: readonly Round[]): string =>
  [{ side: 'bare', ...floor }, ...rounds.map((round, at) => ({ side: sides[at]?.name, ...round }))]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('')
