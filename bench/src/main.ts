import { appendFile } from 'node:fs/promises'
import { logIn, managementRoot, openApi } from './api.js'
import { bareServer } from './floor.js'
import type { Load } from './load.js'
import { type MeasureOptions, measure, type Round } from './measure.js'
import { type Options, readOptions, usage } from './options.js'
import { startProduct } from './product.js'
import { heading, lineFor } from './report.js'
import { openBench, type Scenario, scenarios } from './scenarios.js'
import { seed } from './seed.js'

/** The cost of a server that does nothing, which depends on the machine and its other load. */
const floor: Pick<Scenario, 'name'> = { name: 'floor' }

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(usage)
  else await run(options)
} catch (err) {
  console.error(err instanceof Error ? err.message : err)
  process.exitCode = 1
}

async function run(options: Options): Promise<void> {
  const { topology, keep, only, controller, concurrency, repeat, seconds } = options
  const scenarioNames = [floor, ...scenarios].map(({ name }) => name)
  const unknown = only.find((name) => !scenarioNames.includes(name))
  if (unknown) throw new Error(`--only: '${unknown}' is none of ${scenarioNames.join()}`)
  const isSelected = ({ name }: { name: string }): boolean => only.length === 0 || only.includes(name)

  await using own = controller ? undefined : await startProduct()
  const { url, username, password, pids } = controller ?? own ?? noController()
  using admin = openApi(url, managementRoot, 4)
  const token = await logIn(admin, username, password)
  admin.use(token)
  const seeded = await seed(url, admin, topology, keep, console.log)
  const bench = openBench(url, admin, token, seeded)

  console.log(`\nconcurrency ${concurrency}, ${repeat} rounds of ${seconds} s\n`)
  console.log(heading())
  if (isSelected(floor)) {
    await using bare = await bareServer()
    console.log(lineFor(floor, await roundsOf(floor.name, () => bare.load, bare, options)))
  }
  for (const scenario of scenarios.filter(isSelected)) {
    const prepare = () => scenario.prepare(bench)
    const own = { ...options, concurrency: scenario.concurrency ?? concurrency }
    const rounds = await roundsOf(scenario.name, prepare, { url, pids }, own)
    console.log(lineFor(scenario, rounds))
  }
}

function noController(): never {
  throw new Error('there is no controller')
}

/** The rounds after a first one that does not count: it compiles code and fills caches. */
async function roundsOf(
  scenario: string,
  prepare: () => Load | Promise<Load>,
  { url, pids }: Pick<MeasureOptions, 'url' | 'pids'>,
  { concurrency, seconds, repeat, json }: Options,
): Promise<Round[]> {
  const rounds: Round[] = []
  for (let round = 0; round <= repeat; round += 1) {
    const measured = await measure(scenario, await prepare(), { url, pids, concurrency, seconds })
    if (round === 0) continue
    rounds.push(measured)
    if (json) await appendFile(json, `${JSON.stringify(measured)}\n`)
  }
  return rounds
}
