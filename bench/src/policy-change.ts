import { setTimeout as pause } from 'node:timers/promises'
import type { Api } from './api.js'
import { openSessions } from './open-sessions.js'
import { sumOf, timesOf } from './processor-time.js'
import { digits } from './report.js'
import { allAttribute, roles } from './topology.js'
import type { Side } from './turns.js'

const sessionsOpen = 20_000
/** So many policies of one group have ten services. */
const servicePolicies = 5
const QUIET_MS = 500
/** CPU within that time at which a controller counts as quiet. Housekeeping continues. */
const quietCpuMs = 60
const LONGEST_MS = 600_000

/**
 * Gives a policy to all identities, opens sessions that only this policy allows, and takes it away again. One group of
 * identities has its ten services by other policies too. Prints the time until the answers, until the last of these
 * sessions has ended, and the CPU until the controller is quiet.
 */
export async function measurePolicyChange(
  sides: readonly Side[],
  repeat: number,
  print: (line: string) => void,
): Promise<void> {
  for (let round = 0; round < repeat; round++)
    for (const side of sides) for (const line of await changeOnce(side)) print(`${side.name}: ${line}`)
}

async function changeOnce(side: Side): Promise<string[]> {
  const { admin, seeded } = side.bench
  const { topology } = seeded
  const policies = Array.from({ length: topology.policies }, (_, at) => at)
  const groups = new Set(policies.map((at) => roles.identities(at, topology)[0]))
  if (groups.size === 1) throw new Error('all identities have this policy: a greater --scale is necessary')
  const everybody = { identityRoles: [`#${allAttribute}`] }
  const group = { identityRoles: roles.identities(0, topology) }
  const ofGroup = policies.filter((at) => at % groups.size === 0)
  const policy = await admin.request<{ id: string }>('POST', '/service-policies', {
    ...{ name: 'bench-policy-change', type: 'Dial', semantic: 'AnyOf', ...group },
    serviceRoles: ofGroup.slice(0, servicePolicies).flatMap(roles.services),
  })
  const policyPath = `/service-policies/${policy.id}`

  const granted = await untilQuiet(side, () => admin.request('PATCH', policyPath, everybody))
  const services = await servicesOfPolicy(admin, policy.id)
  const before = await countSessions(admin)
  const opened = await openSessions(side, sessionsOpen, services.length, async () => services)
  const all = await countSessions(admin)
  let endedMs = 0
  const taken = await untilQuiet(side, async () => {
    const started = performance.now()
    await admin.request('PATCH', policyPath, group)
    const answeredMs = performance.now() - started
    endedMs = (await untilStable(admin, all)) - started
    return answeredMs
  })
  const left = await countSessions(admin)
  await admin.request('DELETE', policyPath)
  const pairs = Math.round(topology.identities * (1 - 1 / groups.size)) * services.length
  return [
    `gains ${pairs} pairs: answered after ${digits(granted.answeredMs)} ms, ${digits(granted.cpuMs)} ms of CPU until quiet after ${digits(granted.quietMs)} ms`,
    `loses ${pairs} pairs with ${all} sessions, of which ${opened} are new and ${before} were open: answered after ${digits(taken.answeredMs)} ms, last session ended after ${digits(endedMs)} ms, ${digits(taken.cpuMs)} ms of CPU until quiet after ${digits(taken.quietMs)} ms, ${left} sessions left`,
  ]
}

interface Change {
  readonly answeredMs: number
  readonly quietMs: number
  readonly cpuMs: number
}

/** @param change returns the time until its answer if it does more than that */
async function untilQuiet({ running }: Side, change: () => Promise<unknown>): Promise<Change> {
  const cpuNow = (): number => sumOf(timesOf(running.pids))
  const [cpu, started] = [cpuNow(), performance.now()]
  const result = await change()
  const answeredMs = typeof result === 'number' ? result : performance.now() - started
  for (;;) {
    const [last, lastAt] = [cpuNow(), performance.now()]
    await pause(QUIET_MS)
    const isQuiet = cpuNow() - last < quietCpuMs
    if (isQuiet || lastAt - started > LONGEST_MS)
      return { answeredMs, quietMs: lastAt - started, cpuMs: last - cpu }
  }
}

async function servicesOfPolicy(admin: Api, policyId: string): Promise<string[]> {
  const services = await admin.request<{ id: string }[]>(
    'GET',
    `/service-policies/${policyId}/services?limit=500`,
  )
  return services.map(({ id }) => id)
}

/** The time since which the number of sessions has not changed, after it has become smaller. */
async function untilStable(admin: Api, before: number): Promise<number> {
  const STABLE_MS = 3000
  let [count, since] = [before, performance.now()]
  while (count === before || performance.now() - since < STABLE_MS) {
    const started = performance.now()
    const now = await countSessions(admin)
    if (now !== count) [count, since] = [now, performance.now()]
    else if (started - since > LONGEST_MS) throw new Error('no session has ended')
    await pause(20 + 2 * (performance.now() - started))
  }
  return since
}

const countSessions = (admin: Api): Promise<number> => admin.total('/sessions?limit=1')
