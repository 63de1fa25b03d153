import fc from 'fast-check'
import type { Effect } from '../src/domain/effect.js'
import { mutators } from '../src/domain/mutators.js'
import type { Check } from '../src/domain/posture/posture-check.js'
import { emptyPosture } from '../src/domain/posture/posture-data.js'
import type { EngineKind, Rows } from '../src/domain/rows.js'
import type { State } from '../src/domain/state.js'
import type { World } from './naive-world.js'
import { sampleCheck } from './sample-check.js'

/** One change of one row: written, or removed. */
export type Step = {
  readonly [K in EngineKind]: { readonly kind: K; readonly id: string; readonly row: Rows[K] | null }
}[EngineKind]

export function stepEngine(state: State, { kind, id, row }: Step): Effect {
  const change = mutators[kind] as {
    put(state: State, row: unknown): Effect
    remove(state: State, id: string): Effect
  }
  return row === null ? change.remove(state, id) : change.put(state, row)
}

export function stepWorld(world: World, { kind, id, row }: Step): World {
  const table = new Map<string, unknown>(world[kind])
  if (row === null) table.delete(id)
  else table.set(id, row)
  return { ...world, [kind]: table }
}

const idOf = (letter: string) => fc.constantFrom(1, 2, 3, 4).map((n) => `${letter}${n}`)
const attributes = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'all'), { maxLength: 3 })
const revision = fc.constantFrom('r1', 'r2')
const semantic = fc.constantFrom('AllOf' as const, 'AnyOf' as const)

const roles = (letter: string) =>
  fc.oneof(
    { weight: 1, arbitrary: fc.constant(['#all']) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          fc.uniqueArray(fc.constantFrom('#a', '#b', '#c', '#zzz'), { maxLength: 2 }),
          fc.uniqueArray(
            idOf(letter).map((id) => `@${id}`),
            { maxLength: 2 },
          ),
        )
        .map(([some, named]) => [...some, ...named]),
    },
  )

const domainCheck = (domain: string): Check => ({ ...sampleCheck, typeId: 'DOMAIN', domains: [domain] })

const settings = fc.option(
  fc.record({
    isDisabled: fc.boolean(),
    cost: fc.constantFrom(1, 2),
    precedence: fc.constantFrom('default', 'failed'),
    serviceCosts: fc.dictionary(idOf('s'), fc.constantFrom(3, 4), { maxKeys: 2 }),
    servicePrecedences: fc.dictionary(idOf('s'), fc.constantFrom('default', 'required'), { maxKeys: 2 }),
    appData: fc.constantFrom('', '{"a":1}'),
  }),
  { nil: undefined },
)

const rows: { readonly [K in EngineKind]: fc.Arbitrary<Rows[K]> } = {
  identities: fc.record({ id: idOf('i'), attributes, isAdmin: fc.boolean(), settings }),
  services: fc.record({
    id: idOf('s'),
    attributes,
    revision,
    configIds: fc.uniqueArray(idOf('c'), { maxLength: 2 }),
    encryptionRequired: fc.boolean(),
  }),
  'edge-routers': fc.record({ id: idOf('r'), attributes }),
  'posture-checks': fc
    .record({ id: idOf('k'), attributes, domain: fc.constantFrom('a', 'b') })
    .map(({ id, attributes, domain }) => ({ id, attributes, revision: domain, check: domainCheck(domain) })),
  'posture-data': fc.record({ id: idOf('i'), domain: fc.constantFrom('a', 'b') }).map(({ id, domain }) => ({
    id,
    data: { ...emptyPosture, domain: { checkId: '', at: '', domain } },
    lapsedAtMs: 0,
  })),
  configs: fc.record({ id: idOf('c'), typeId: idOf('t'), revision, data: fc.constantFrom('{}', '{"a":1}') }),
  'config-types': fc.record({ id: idOf('t'), name: fc.constantFrom('intercept', 'host') }),
  'service-configs': fc
    .record({ identityId: idOf('i'), serviceId: idOf('s'), configId: idOf('c') })
    .map((override) => ({ id: `${override.identityId}/${override.serviceId}`, ...override })),
  'service-policies': fc.record({
    id: idOf('p'),
    type: fc.constantFrom('Dial' as const, 'Bind' as const),
    semantic,
    identityRoles: roles('i'),
    serviceRoles: roles('s'),
    postureCheckRoles: fc.oneof(fc.constant([]), roles('k')),
  }),
  'edge-router-policies': fc.record({
    id: idOf('p'),
    semantic,
    roles: roles('i'),
    edgeRouterRoles: roles('r'),
  }),
  'service-edge-router-policies': fc.record({
    id: idOf('p'),
    semantic,
    roles: roles('s'),
    edgeRouterRoles: roles('r'),
  }),
}

const weights: { readonly [K in EngineKind]: number } = {
  identities: 6,
  services: 4,
  'edge-routers': 2,
  'posture-checks': 2,
  'posture-data': 2,
  configs: 1,
  'config-types': 1,
  'service-configs': 1,
  'service-policies': 8,
  'edge-router-policies': 2,
  'service-edge-router-policies': 2,
}

export const step: fc.Arbitrary<Step> = fc.oneof(
  ...(Object.keys(rows) as EngineKind[]).map((kind) => ({
    weight: weights[kind],
    arbitrary: fc
      .tuple(rows[kind] as fc.Arbitrary<Rows[EngineKind]>, fc.integer({ min: 0, max: 3 }))
      .map(([row, dice]) => ({ kind, id: row.id, row: dice === 0 ? null : row }) as Step),
  })),
)

/** Sequences over so few entities that they meet all the time. */
export const steps: fc.Arbitrary<Step[]> = fc.array(step, { minLength: 10, maxLength: 60, size: 'max' })
