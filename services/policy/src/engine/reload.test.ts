import type { Change } from '@overlay/rpc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Step, step } from '../../testing/steps.js'
import { contentKey } from '../domain/authorization/content-key.js'
import { engineKinds } from '../domain/mutators.js'
import type { Population } from '../domain/population.js'
import type { EngineKind, PostureCheck, RouterPolicy, Rows, Service } from '../domain/rows.js'
import { emptyState, type State } from '../domain/state.js'
import { commonRouters, linkingPolicies, permissionsOf, requiredCheckIds } from '../domain/state-queries.js'
import { openEngineMemory } from './engine-memory.js'
import { openProgress } from './progress.js'

const schemas = { identity: ['identities'], sessions: ['edge-routers'], policy: [] as EngineKind[] } as const
type Schema = keyof typeof schemas
const schemaOf = (kind: EngineKind): Schema =>
  kind === 'identities' ? 'identity' : kind === 'edge-routers' ? 'sessions' : 'policy'
const kindsOf = (schema: Schema): EngineKind[] => engineKinds.filter((kind) => schemaOf(kind) === schema)

/** The JSON of a row, of which the engine decodes it. */
const payloads: { readonly [K in EngineKind]?: (row: Rows[K]) => object } = {
  services: ({ attributes, configIds, revision }: Service) => ({
    roleAttributes: attributes,
    configs: configIds,
    revision,
  }),
  'posture-checks': ({ attributes, check }: PostureCheck) => ({ ...check, roleAttributes: attributes }),
  configs: ({ typeId, revision }) => ({ configTypeId: typeId, revision }),
  'posture-data': ({ data }) => ({ data }),
  'edge-router-policies': ({ roles, ...rest }: RouterPolicy) => ({ ...rest, identityRoles: roles }),
  'service-edge-router-policies': ({ roles, ...rest }: RouterPolicy) => ({ ...rest, serviceRoles: roles }),
}
function jsonOf({ kind, id, row }: Step): Buffer {
  if (row === null) return Buffer.alloc(0)
  const payload = (payloads[kind] as ((row: unknown) => object) | undefined)?.(row) ?? row
  const { attributes } = row as { attributes?: readonly string[] }
  return Buffer.from(
    JSON.stringify({ roleAttributes: attributes ?? null, ...payload, name: `name of ${id}` }),
  )
}

type Table = ReadonlyMap<string, Change>

/** An owner of rows: its change log, and its rows after each change. */
function ownerOf() {
  let timeline = 1
  let log: Change[] = []
  let tables: Table[] = [new Map()]
  return {
    position: () => ({ timeline: String(timeline), number: log.length }),
    rows: (): Change[] => [...(tables.at(-1)?.values() ?? [])].map((row) => ({ ...row, atMs: 0, number: 0 })),
    after: (number: number) => log.slice(number),
    write(written: Step) {
      const change = {
        kind: written.kind,
        id: written.id,
        json: jsonOf(written),
        atMs: 1,
        number: log.length + 1,
      }
      log.push(change)
      const table = new Map(tables.at(-1))
      table.delete(`${change.kind} ${change.id}`)
      if (change.json.length > 0) table.set(`${change.kind} ${change.id}`, change)
      tables.push(table)
    },
    loseLast(count: number) {
      timeline++
      log = log.slice(0, Math.max(0, log.length - count))
      tables = tables.slice(0, log.length + 1)
    },
  }
}
type Owner = ReturnType<typeof ownerOf>

const idsOf = ({ present, idsOf }: Population): string[] => idsOf(present).sort()

/** All that the engine answers from. */
function contentOf(state: State, names: ReadonlyMap<string, ReadonlyMap<string, string>>): unknown {
  const { identities, services, routers, checks, admins } = state
  return {
    members: [identities, services, routers, checks].map(idsOf),
    admins: identities.idsOf(admins).sort(),
    pairs: idsOf(identities).flatMap((identity) =>
      idsOf(services).map((service) => [
        permissionsOf(state, identity, service),
        linkingPolicies(state, identity, service)
          .map(({ policyId, type }) => [policyId, type, requiredCheckIds(state, policyId)])
          .sort(),
        commonRouters(state, identity, service),
      ]),
    ),
    keys: idsOf(identities).map((id) => keyOf(state, id)),
    maps: [
      state.contents,
      state.checkContents,
      state.postureData,
      state.configs,
      state.typeNames,
      state.overrides,
    ],
    names: new Map([...names].map(([kind, ofKind]) => [kind, new Map([...ofKind].sort())])),
  }
}
const keyOf = (state: State, identityId: string): string => contentKey(state, { identityId, isAdmin: false })
const grantsOf = (state: State, identityId: string): string =>
  JSON.stringify(
    idsOf(state.services)
      .filter((service) => permissionsOf(state, identityId, service).length > 0)
      .map((service) => [
        service,
        linkingPolicies(state, identityId, service)
          .map(({ policyId, type }) => [policyId, type, requiredCheckIds(state, policyId)])
          .sort(),
        commonRouters(state, identityId, service),
      ]),
  )

/** The memory of one replica, which follows the owners, and a reader that keeps what it has read until it is notified. */
function replicaOf(owners: Record<Schema, Owner>) {
  const state = emptyState()
  const views = new Map<string, string>()
  const grants = new Map<string, string>()
  const drop = (kept: Map<string, string>) => (ids: readonly string[] | 'all') => {
    if (ids === 'all') kept.clear()
    else for (const id of ids) kept.delete(id)
  }
  const updates = { start() {}, add() {}, advance() {}, forget() {} }
  const progress = openProgress(state.identities, updates, { changed: drop(views), regranted: drop(grants) })
  const names = new Map<string, ReadonlyMap<string, string>>()
  const follow = (schema: Schema) => {
    const owner = owners[schema]
    const memory = openEngineMemory(state, kindsOf(schema), {
      changed: (effect, change, upto) => progress.note(schema, effect, change, upto),
      applied: (upto) => progress.advance(schema, upto),
      loading: () => progress.beginLoad(schema),
    })
    for (const [kind, ofKind] of memory.names) names.set(kind, ofKind)
    let at: { timeline: string; number: number } | undefined
    let load:
      | { rows: Change[]; upto: { timeline: string; number: number }; into: ReturnType<typeof memory.load> }
      | undefined
    const follower = {
      isCurrent: () => at !== undefined && at.timeline === owner.position().timeline,
      deliver(count: number, isUnknown: boolean) {
        if (!at || !follower.isCurrent()) return
        const changes = owner.after(at.number).slice(0, count)
        const upto = { ...at, number: at.number + changes.length }
        const [first] = changes
        if (isUnknown && first && changes.length === 1) {
          memory.unknown?.(first, upto)
          at = undefined // only a load repairs it
        } else {
          memory.apply(changes, upto)
          at = upto
        }
      },
      begin() {
        at = undefined
        load = { rows: owner.rows(), upto: owner.position(), into: memory.load() }
      },
      add: (count: number) => load?.into.add(load.rows.splice(0, count), load.upto),
      async end() {
        if (!load) return
        const { rows, upto, into } = load
        into.add(rows, upto)
        await into.end(upto)
        at = upto
        load = undefined
      },
      async settle() {
        if (!follower.isCurrent()) {
          follower.begin()
          await follower.end()
        }
        follower.deliver(Infinity, false)
      },
    }
    return follower
  }
  return {
    followers: { identity: follow('identity'), sessions: follow('sessions'), policy: follow('policy') },
    content: () => contentOf(state, names),
    read(id: string) {
      views.set(id, keyOf(state, id))
      grants.set(id, grantsOf(state, id))
    },
    /** What the reader keeps, and what it would read. */
    kept: () => [[...views], [...grants]],
    current: () => [
      [...views.keys()].map((id) => [id, keyOf(state, id)]),
      [...grants.keys()].map((id) => [id, grantsOf(state, id)]),
    ],
  }
}

const schema = fc.constantFrom<Schema>('identity', 'sessions', 'policy', 'policy')
const count = fc.integer({ min: 1, max: 4 })
const event = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('write' as const), step }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('deliver' as const), schema, count, isUnknown: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail over' as const), schema, count }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('begin' as const), schema }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), schema, count }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const), schema }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('read' as const), id: fc.constantFrom('i1', 'i2', 'i3', 'i4') }),
  },
)

test('any order of changes, deletes, new timelines and loads ends in the state of a fresh load', async () => {
  const events = fc.array(event, { minLength: 20, maxLength: 120, size: 'max' })
  await fc.assert(
    fc.asyncProperty(events, async (sequence) => {
      const owners = { identity: ownerOf(), sessions: ownerOf(), policy: ownerOf() }
      const replica = replicaOf(owners)
      for (const each of Object.values(replica.followers)) await each.settle()
      for (const one of sequence) {
        if (one.do === 'write') owners[schemaOf(one.step.kind)].write(one.step)
        else if (one.do === 'read') replica.read(one.id)
        else if (one.do === 'fail over') owners[one.schema].loseLast(one.count)
        else {
          const follower = replica.followers[one.schema]
          if (one.do === 'deliver') follower.deliver(one.count, one.isUnknown)
          else if (one.do === 'begin') follower.begin()
          else if (one.do === 'add') follower.add(one.count)
          else await follower.end()
        }
      }
      for (const each of Object.values(replica.followers)) await each.settle()

      const fresh = replicaOf(owners)
      for (const each of Object.values(fresh.followers)) await each.settle()
      expect(replica.content()).toEqual(fresh.content())
      expect(replica.kept()).toEqual(replica.current())
    }),
    { numRuns: 300 },
  )
})
