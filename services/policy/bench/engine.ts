import { sizeOf } from '../src/domain/bitset.js'
import { contentKey } from '../src/domain/content.js'
import { changes } from '../src/domain/mutators.js'
import { commonRouters, mayUse, visibleIds } from '../src/domain/queries.js'
import { emptyState } from '../src/domain/state.js'

// How long the engine takes at a size that no table of pairs could hold. Run: npx tsx -C source services/policy/bench/engine.ts
const IDENTITIES = 100_000
const SERVICES = 10_000
const POLICIES = 2_000
const ATTRIBUTES = 1_000
const ATTRIBUTES_EACH = 5

/** The same numbers in every run. */
let seed = 1
const random = (below: number): number => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
  return seed % below
}
const attributesOf = (): string[] => Array.from({ length: ATTRIBUTES_EACH }, () => `a${random(ATTRIBUTES)}`)
const identity = (n: number) => ({ id: `i${n}`, attributes: attributesOf(), isAdmin: false })
const service = (n: number, revision = '1') => ({
  id: `s${n}`,
  attributes: attributesOf(),
  configIds: [],
  revision,
})
const policy = (
  n: number,
  identityRoles = [`#a${random(ATTRIBUTES)}`],
  serviceRoles = [`#a${random(ATTRIBUTES)}`],
) => ({
  id: `p${n}`,
  type: n % 2 === 0 ? ('Dial' as const) : ('Bind' as const),
  semantic: 'AnyOf' as const,
  identityRoles,
  serviceRoles,
  postureCheckRoles: [],
})

const rows: string[][] = []
function measure(what: string, times: number, work: (n: number) => unknown): void {
  const before = process.cpuUsage() // other programs do not count
  let last: unknown
  for (let n = 0; n < times; n++) last = work(n)
  const { user, system } = process.cpuUsage(before)
  const each = (user + system) / 1000 / times
  const text = each >= 1 ? `${each.toFixed(1)} ms` : `${(each * 1000).toFixed(1)} µs`
  rows.push([what, times === 1 ? '' : `×${times}`, text, typeof last === 'number' ? `${last} updated` : ''])
}

const state = emptyState()
const updatedBy = ({ updated }: { updated: Parameters<typeof sizeOf>[0] }): number => sizeOf(updated)

measure(`build: ${SERVICES} services`, 1, () => {
  for (let n = 0; n < SERVICES; n++) changes.services.put(state, service(n))
})
measure(`build: ${POLICIES} policies`, 1, () => {
  for (let n = 0; n < POLICIES; n++) changes['service-policies'].put(state, policy(n))
})
measure(`build: ${IDENTITIES} identities`, 1, () => {
  for (let n = 0; n < IDENTITIES; n++) changes.identities.put(state, identity(n))
})
for (let n = 0; n < 20; n++) changes['edge-routers'].put(state, { id: `r${n}`, attributes: ['public'] })
const everywhere = { id: 'e', semantic: 'AnyOf' as const, roles: ['#all'], edgeRouterRoles: ['#public'] }
changes['edge-router-policies'].put(state, everywhere)
changes['service-edge-router-policies'].put(state, everywhere)

const viewer = () => ({ identityId: `i${random(IDENTITIES)}`, isAdmin: false })
measure('ids of the services of an identity', 10_000, () => visibleIds(state, viewer()))
measure('content key of an identity', 2_000, () => contentKey(state, viewer()))
measure('content key of an admin', 3, () => contentKey(state, { identityId: 'i1', isAdmin: true }))
measure('may this identity dial that service', 100_000, () =>
  mayUse(state, `i${random(IDENTITIES)}`, `s${random(SERVICES)}`, 'Dial'),
)
measure('routers common to identity and service', 10_000, () =>
  commonRouters(state, `i${random(IDENTITIES)}`, `s${random(SERVICES)}`),
)
measure('attributes of an identity change', 10_000, () =>
  updatedBy(changes.identities.put(state, identity(random(IDENTITIES)))),
)
measure('attributes of a service change', 1_000, (n) =>
  updatedBy(changes.services.put(state, service(random(SERVICES), `${n}`))),
)
measure('identity roles of a policy change', 500, () =>
  updatedBy(changes['service-policies'].put(state, policy(random(POLICIES)))),
)
measure('policy of all identities for one attribute', 5, (n) =>
  updatedBy(changes['service-policies'].put(state, policy(POLICIES, ['#all'], [`#a${n}`]))),
)
measure('policy of all identities and all services', 1, () =>
  updatedBy(changes['service-policies'].put(state, policy(POLICIES, ['#all'], ['#all']))),
)
measure('a second one', 1, () =>
  updatedBy(changes['service-policies'].put(state, policy(POLICIES + 2, ['#all'], ['#all']))),
)
measure('identity comes while it exists', 1_000, (n) =>
  updatedBy(changes.identities.put(state, identity(IDENTITIES + n))),
)
measure('policy of all identities and all services goes', 1, () => {
  changes['service-policies'].remove(state, `p${POLICIES + 2}`)
  return updatedBy(changes['service-policies'].remove(state, `p${POLICIES}`))
})

for (const row of rows) console.log(row.map((cell, i) => cell.padEnd(i === 0 ? 48 : 10)).join(' '))
console.log(`resident ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB`)
