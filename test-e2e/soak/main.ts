import { setMaxListeners } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { logInAsAdmin } from '../admin.js'
import { openAdministrator } from './administrator.js'
import { type AuthorizationProbe, openAuthorizationProbe } from './authorization-probe.js'
import type { Run } from './caller.js'
import { openCalm } from './calm.js'
import { checkAtRest } from './checks-at-rest.js'
import { emptyShared, openContender } from './contender.js'
import { type FaultName, failoverNames, faultsOf, killingFaults } from './faults.js'
import { openHostile } from './hostile.js'
import type { HostileNetwork } from './hostile-router.js'
import { openMemory } from './memory.js'
import { type Options, readOptions, usage } from './options.js'
import { type ProcessWatch, watchProcesses } from './process-watch.js'
import { dealer, type Random, randomOf } from './random.js'
import { openReport, type Report, rules } from './report.js'
import { administrator, startTopology, type Topology } from './topology.js'
import { openTrafficWorker } from './traffic-worker.js'
import { openWorker, type Worker } from './worker.js'

const RECOVERY_MS = 5000
/** Runs of this length have the long faults, and compare memory. */
const LONG_MINUTES = 15
const WARM_MS = 5 * 60_000
const MOST_GROWTH = 1.1
const RESOLVE_MS = 60_000
const CALM_BETWEEN_MS = 3000
/** Attribute of all routers but the hostile one. */
const ROUTERS = 'honest'

const options = readOptions(process.argv.slice(2))
if (options.help) console.log(usage)
else process.exitCode = (await soak(options)) ? 0 : 1

/** False: a rule was violated. */
async function soak(options: Options): Promise<boolean> {
  const { seed, slack, minutes, roundSeconds } = options
  const logFile = options.log ?? join(tmpdir(), `soak-${seed}.log`)
  console.log(`seed ${seed}, ${minutes} minutes, faults ${options.faults.join() || 'none'}, log ${logFile}`)
  // the run has many logins, and the cost of password hashes does not matter
  process.env.OVERLAY_PASSWORD_MEMORY_KIB ??= '3072'
  process.env.OVERLAY_PASSWORD_PASSES ??= '1'

  const calm = openCalm(slack)
  const unchecked: string[] = [
    ...(options.faults.length > 0 ? [] : [rules.recovers, rules.authorizes]),
    ...(options.faults.includes('failover-async') ? [] : [rules.kept, rules.sessions]),
    ...(options.hostile ? [] : [rules.isolated, rules.untouched]),
    ...(minutes < LONG_MINUTES ? [rules.memory] : []),
  ]
  const checked = Object.values(rules).filter((rule) => !unchecked.includes(rule))
  const report = openReport(logFile, checked, () => ({ fault: calm.fault(), calm: calm.isCalm() }))
  await using topology = await startTopology(options.layout, (line) => report.log('launcher', { line }))
  const { gateways, caPem } = topology.product
  const target = { gateways, caPem, calm, losses: topology.losses, report }
  using admin = await openAdministrator(target)
  const filter = encodeURIComponent('name="host.v1"')
  const { data } = await admin.insist(0, 'GET', `/config-types?filter=${filter}`)
  const hostConfigType = (data as { id: string }[])[0]?.id ?? ''
  const run: Run = { ...target, hostConfigType }
  await routeEverything(run, admin)

  const workers: Worker[] = []
  for (let at = 0; at < options.workers; at += 1)
    workers.push(await openWorker(run, `w${at}`, randomOf(seed, `worker ${at}`)))
  const shared = emptyShared()
  const contenders = []
  for (let at = 0; at < options.contenders; at += 1)
    contenders.push(await openContender(run, `c${at}`, shared, randomOf(seed, `contender ${at}`)))

  const random = randomOf(seed, 'faults')
  const isLong = minutes >= LONG_MINUTES
  const faults = faultsOf(topology, random, { busAwayMs: isLong ? 60_000 : 6000 })
  const network = await openNetwork(run, topology)
  await using traffic = await openTrafficWorker(run, { ...network, roleAttributes: [ROUTERS] })
  await using hostile = options.hostile
    ? await openHostile(run, admin, network, randomOf(seed, 'hostile'))
    : undefined
  using probe = await openAuthorizationProbe(run, admin)
  const first: string[] = failoverNames.filter((name) => options.faults.includes(name))
  const deal = dealer(random, () => options.faults)
  const nextFault = (): string | undefined => first.shift() ?? deal()
  await topology.database.whole()
  const processes = watchProcesses(topology.product, report)
  const startedAt = performance.now()
  const endsAt = startedAt + minutes * 60_000
  const memory = openMemory(startedAt + WARM_MS, endsAt)
  for (let round = 1; performance.now() < endsAt; round += 1) {
    const until = Math.min(endsAt, performance.now() + roundSeconds * 1000)
    const working = new AbortController()
    setMaxListeners(0, working.signal) // one for the pause of each client
    const done = [...workers, ...contenders, traffic].map((one) =>
      repeat(one, working.signal, report, random),
    )
    while (performance.now() < until) {
      await pause(CALM_BETWEEN_MS + random.int(CALM_BETWEEN_MS))
      const name = performance.now() < until ? (nextFault() as FaultName | undefined) : undefined
      if (!name) continue
      await topology.database.whole()
      await causeFault(name, faults, topology, run, { probe, processes }, slack)
    }
    await untilResolved(workers)
    working.abort()
    await Promise.all(done)
    processes.check()
    const failed = (err: unknown): void => report.violated(rules.agree, { error: String(err) })
    await checkAtRest(run, admin, workers, randomOf(seed, `rest ${round}`)).catch(failed)
    await hostile?.check(RECOVERY_MS * slack).catch(failed)
    const mib = await topology.memoryMiB()
    memory.add(performance.now(), mib)
    console.log(
      `round ${round}: ${report.operations()} operations, ${report.violations()} violations, ${mib} MiB`,
    )
    report.log('memory', { mib })
  }
  if (isLong) {
    const compared = memory.compared()
    if (compared.last <= MOST_GROWTH * compared.first) report.passed(rules.memory)
    else report.violated(rules.memory, compared)
    console.log(`memory: ${compared.first} MiB, at the end ${compared.last} MiB`)
  }
  for (const one of [...workers, ...contenders]) one[Symbol.dispose]()
  const summary = report.summary()
  report.log('summary', { summary })
  console.log(summary)
  return summary.endsWith(' 0 failed')
}

async function openNetwork(run: Run, { product }: Topology): Promise<HostileNetwork> {
  const server = { addresses: run.gateways, caPem: run.caPem }
  const admin = await logInAsAdmin(server, administrator)
  return { server, controllers: product.controllers, admin }
}

/** Creates one router, which sessions require, and lets all use it and those with the same attribute. */
async function routeEverything(
  run: Run,
  admin: Awaited<ReturnType<typeof openAdministrator>>,
): Promise<void> {
  const all = ['#all']
  const semantic = 'AnyOf'
  await admin.insist(0, 'POST', '/edge-routers', { name: 'soak', roleAttributes: [ROUTERS] })
  const body = { name: 'soak', semantic, edgeRouterRoles: [`#${ROUTERS}`] }
  await admin.insist(0, 'POST', '/edge-router-policies', { ...body, identityRoles: all })
  await admin.insist(0, 'POST', '/service-edge-router-policies', { ...body, serviceRoles: all })
  run.report.log('ready')
}

async function causeFault(
  name: FaultName,
  faults: Record<FaultName, () => Promise<string>>,
  topology: Topology,
  { calm, report }: Run,
  { probe, processes }: { readonly probe: AuthorizationProbe; readonly processes: ProcessWatch },
  slack: number,
): Promise<void> {
  processes.check()
  calm.begin(name)
  report.note(`fault ${name}`)
  const what = await faults[name]()
  const endedAt = performance.now()
  const isBack = await topology.recovered(RECOVERY_MS * slack)
  report.observe(`ready again after ${name}`, performance.now() - endedAt)
  calm.end()
  report.log('fault', { name, what, isBack })
  if (isBack) report.passed(rules.recovers)
  else report.violated(rules.recovers, { name, what })
  if (killingFaults.has(name)) processes.forget()
  else processes.check()
  await probe.check(RECOVERY_MS * slack)
}

async function repeat(
  { step }: { step(): Promise<void> },
  signal: AbortSignal,
  report: Report,
  random: Random,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await step()
    } catch (err) {
      report.violated(rules.explained, {
        error: (err as Error).stack,
      })
      await pause(1000)
    }
    await pause(random.int(15))
  }
}

/** Resolves when no operation has an unknown outcome, or after a minute. */
async function untilResolved(workers: readonly Worker[]): Promise<void> {
  const deadline = performance.now() + RESOLVE_MS
  while (workers.some((worker) => worker.isUnsure()) && performance.now() < deadline) await pause(200)
}
