import { withClient } from '@overlay/launcher/testing'
import { logIn, managementRoot, openApi } from './api.js'
import { measureColdStart } from './cold-start.js'
import { type Fleet, startFleet } from './fleet.js'
import { type Options, type RunningController, readOptions, usage } from './options.js'
import { measurePolicyChange } from './policy-change.js'
import { type Product, startProduct } from './product.js'
import { heading, linesFor } from './report.js'
import { measureRest } from './rest.js'
import { routerScenarios } from './router-scenarios.js'
import type { Scenario } from './scenario.js'
import { openBench, scenarios } from './scenarios.js'
import { seed } from './seed.js'
import { seedRows } from './seed-rows.js'
import { measureInTurns, type Side } from './turns.js'

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130))

try {
  const options = readOptions(process.argv.slice(2))
  if (options.help) console.log(usage)
  else await run(options)
} catch (err) {
  console.error(err instanceof Error ? err.message : err)
  process.exitCode = 1
}

async function run(options: Options): Promise<void> {
  const { only, controller, beside, besideLayouts, mode, layout } = options
  const all = {
    requests: scenarios,
    routers: routerScenarios,
    rest: [],
    'policy-change': [],
    'cold-start': [],
  }[mode]
  const unknown = only.find((name) => !all.some((scenario) => scenario.name === name))
  if (unknown) throw new Error(`--only: '${unknown}' is none of ${all.map(({ name }) => name).join()}`)
  const selected = all.filter(({ name }) => only.length === 0 || only.includes(name))

  await using opened = new AsyncDisposableStack()
  const start = async (product: Promise<Product>): Promise<Product> => opened.use(await product)
  const ours = controller ?? (await start(startProduct({ layout })))
  const other = beside && 'directory' in beside ? await start(startProduct(beside)) : beside
  const sides = [await openSide('ours', ours, options, opened)]
  if (other) sides.push(await openSide('other', other, options, opened))
  for (const layout of besideLayouts) {
    const { count, isSeparate } = layout
    const name = isSeparate ? `${count} of each` : `${count} whole`
    sides.push(await openSide(name, await start(startProduct({ layout })), options, opened))
  }
  console.log()
  if (mode === 'rest') return await measureRest(sides, console.log)
  if (mode === 'policy-change') return await measurePolicyChange(sides, options.repeat, console.log)
  if (mode === 'cold-start') return await measureColdStart(sides, options.repeat, console.log)
  await measureRequests(selected, sides, options)
}

async function measureRequests(
  selected: readonly Scenario[],
  sides: readonly Side[],
  options: Options,
): Promise<void> {
  const { concurrency, repeat, seconds } = options
  console.log(`concurrency ${concurrency}, ${repeat} turns, rounds of ${seconds} s\n`)
  console.log(heading())
  for (const scenario of selected)
    console.log(linesFor(scenario, sides, await measureInTurns(scenario, sides, options)))
}

/** Seeds a controller, and connects routers to it if they are measured. */
async function openSide(
  name: string,
  running: RunningController | Product,
  { topology, rows, keep, repeat, mode, routers, line }: Options,
  opened: AsyncDisposableStack,
): Promise<Side> {
  const { url, username, password } = running
  const print = (line: string): void => console.log(`${name}: ${line}`)
  const admin = opened.use(openApi(url, managementRoot, 16))
  const token = await logIn(admin, username, password)
  admin.use(token)
  const file = keep && name !== 'ours' ? `${keep}.${name}` : keep
  const fromApi = await seed(url, admin, topology, file, print)
  if (rows > 0) {
    if (!('withDatabase' in running))
      throw new Error('--authenticators requires a product that is started here')
    await addRows(running, rows)
    print(`${rows} passwords and ${rows} certificates added to the database`)
  }
  let fleet: Fleet | undefined
  if (mode === 'routers')
    fleet = opened.use(await startFleet(admin, running, { count: routers, line }, print))
  const bench = openBench(url, admin, token, { ...fromApi, rows }, repeat + 1, fleet)
  return { name, bench, running }
}

const addRows = ({ withDatabase }: Product, rows: number): Promise<void> =>
  withDatabase((ownerUrl) =>
    withClient(ownerUrl, (client) => seedRows((text, values = []) => client.query(text, [...values]), rows)),
  )
