import { appendFile } from 'node:fs/promises'
import { logIn, managementRoot, openApi } from './api.js'
import { measure, type Round } from './measure.js'
import { type Options, readOptions, usage } from './options.js'
import { startProduct } from './product.js'
import { heading, lineFor } from './report.js'
import { type Bench, openBench, type Scenario, scenarios } from './scenarios.js'
import { seed } from './seed.js'

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(usage)
  else await run(options)
} catch (err) {
  console.error(err instanceof Error ? err.message : err)
  process.exitCode = 1
}

async function run(options: Options): Promise<void> {
  const { topology, keep, only, running } = options
  const unknown = only.find((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown) throw new Error(`--only: '${unknown}' is none of ${scenarios.map(({ name }) => name).join()}`)
  await using own = running ? undefined : await startProduct()
  const { url, username, password, pids } = running ?? own ?? neither()
  using admin = openApi(url, managementRoot, 4)
  const token = await logIn(admin, username, password)
  admin.use(token)
  const seeded = await seed(url, admin, topology, keep, console.log)
  const bench = openBench(url, admin, token, seeded)
  console.log(`\nconcurrency ${options.concurrency}, ${options.repeat} rounds of ${options.seconds} s\n`)
  console.log(heading())
  for (const scenario of scenarios)
    if (only.length === 0 || only.includes(scenario.name)) {
      const rounds = await roundsOf(scenario, bench, pids, options)
      console.log(lineFor(scenario, rounds))
    }
}

function neither(): never {
  throw new Error('neither started nor given')
}

async function roundsOf(
  scenario: Scenario,
  bench: Bench,
  pids: readonly number[],
  { concurrency, seconds, repeat, json }: Options,
): Promise<Round[]> {
  const { url } = bench
  const rounds: Round[] = []
  for (let round = 0; round < repeat; round += 1) {
    const load = await scenario.prepare(bench)
    const measured = await measure(scenario.name, load, { url, pids, concurrency, seconds })
    if (json) await appendFile(json, `${JSON.stringify(measured)}\n`)
    rounds.push(measured)
  }
  return rounds
}
