import { appendFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { withClient } from '@overlay/launcher/testing'
import { type Api, logIn, managementRoot, openApi } from './api.js'
import { connectFleet, enrollFleet, type Fleet } from './fleet.js'
import { bareServer } from './floor.js'
import type { Load } from './load.js'
import { type MeasureOptions, measure, type Round } from './measure.js'
import { type Options, type RunningController, readOptions, usage } from './options.js'
import { between, memoryKib, timesOf } from './processor-time.js'
import { type Product, startProduct } from './product.js'
import { heading, lineFor, medianOf } from './report.js'
import { routerScenarios } from './router-scenarios.js'
import type { Bench, Scenario } from './scenario.js'
import { openBench, scenarios } from './scenarios.js'
import { seed } from './seed.js'
import { seedRows } from './seed-rows.js'

/** The cost of a server that does nothing, which depends on the machine and its other load. */
const floor: Pick<Scenario, 'name'> = { name: 'floor' }
const SETTLE_MS = 10_000

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(usage)
  else await run(options)
} catch (err) {
  console.error(err instanceof Error ? err.message : err)
  process.exitCode = 1
}

async function run(options: Options): Promise<void> {
  const { topology, rows, keep, only, controller, concurrency, repeat, seconds, withRouters } = options
  const all = withRouters ? routerScenarios : scenarios
  const names = [floor, ...all].map(({ name }) => name)
  const unknown = only.find((name) => !names.includes(name))
  if (unknown) throw new Error(`--only: '${unknown}' is none of ${names.join()}`)
  await using own = controller ? undefined : await startProduct()
  const running = controller ?? own ?? noController()
  const { url, username, password } = running
  using admin = openApi(url, managementRoot, 4)
  const token = await logIn(admin, username, password)
  admin.use(token)
  const fromApi = await seed(url, admin, topology, keep, console.log)
  if (rows > 0) await addRows(own ?? noController(), rows)
  const seeded = { ...fromApi, rows }
  await using fleet = withRouters ? await startFleet(admin, running, options.routers) : undefined
  const bench = openBench(url, admin, token, seeded, fleet)

  console.log(`\nconcurrency ${concurrency}, ${repeat} rounds of ${seconds} s\n`)
  console.log(heading())
  await measureAll(all, bench, running, options)
}

async function addRows({ withDatabase }: Product, rows: number): Promise<void> {
  await withDatabase((ownerUrl) =>
    withClient(ownerUrl, (client) => seedRows((text, values = []) => client.query(text, [...values]), rows)),
  )
  console.log(`${rows} passwords and ${rows} certificates added to the database`)
}

async function measureAll(
  all: readonly Scenario[],
  bench: Bench,
  { url, pids }: RunningController,
  options: Options,
): Promise<void> {
  const { only } = options
  const isSelected = ({ name }: { name: string }): boolean => only.length === 0 || only.includes(name)
  let floorMs: number | undefined
  if (isSelected(floor)) {
    await using bare = await bareServer()
    const rounds = await roundsOf(floor.name, () => bare.load, bare, options)
    floorMs = medianOf(rounds)?.cpuMs
    console.log(lineFor(floor, rounds, floorMs))
  }
  for (const scenario of all.filter(isSelected)) {
    const prepare = () => scenario.prepare(bench)
    const own = { ...options, concurrency: scenario.concurrency ?? options.concurrency }
    const rounds = await roundsOf(scenario.name, prepare, { url, pids }, own)
    console.log(lineFor(scenario, rounds, floorMs))
  }
}

/** Connects routers, and reports what they cost in time and memory. */
async function startFleet(
  admin: Api,
  { url, ctrlAddress, pids }: RunningController,
  count: number,
): Promise<Fleet> {
  if (!ctrlAddress) throw new Error('--ctrl is missing')
  const started = performance.now()
  const kib = memoryKib(pids, 'sessions')
  const identities = await enrollFleet(url, admin, count)
  const enrolled = performance.now()
  console.log(`${count} routers enrolled in ${((enrolled - started) / 1000).toFixed(1)} s`)
  await pause(SETTLE_MS)
  const [times, connecting] = [timesOf(pids), performance.now()]
  const fleet = await connectFleet(identities, ctrlAddress)
  const seconds = (performance.now() - connecting) / 1000
  const cpu = [...between(times, timesOf(pids))].map(([part, ms]) => `${part} ${(ms / count).toFixed(2)}`)
  console.log(`${count} routers connected in ${seconds.toFixed(1)} s, CPU ms of each: ${cpu.join(', ')}`)
  await pause(SETTLE_MS)
  const kibOfEach = (memoryKib(pids, 'sessions') - kib) / count
  console.log(`memory of sessions: ${kibOfEach.toFixed(0)} KiB for each router, with its enrollment`)
  return fleet
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
