import { DataState, DataStateChangeSet, ModelEvent } from '@overlay/channel'
import type { Position, Positions } from '@overlay/rpc'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { differences } from '../../../../packages/channel/testing/model-contents.js'
import { openStrictModel } from '../../../../packages/channel/testing/strict-model.js'
import { naiveModel } from '../../testing/naive-model.js'
import { emptyWorld, type World } from '../../testing/naive-world.js'
import { payloadOf } from '../../testing/payloads.js'
import { sampleCheck } from '../../testing/sample-check.js'
import { type Step, step, stepWorld } from '../../testing/steps.js'
import { engineKinds } from '../domain/mutators.js'
import type { EngineKind } from '../domain/rows.js'
import { emptyState } from '../domain/state.js'
import { type Touched, uniteTouched } from '../domain/touched.js'
import { openEngineMemory } from '../engine/engine-memory.js'
import { changesOf, isAmbiguous } from './changes.js'
import { type Events, fullState } from './full-state.js'
import { openJournal, type Reached } from './journal.js'

const schemaOf = (kind: EngineKind): string =>
  kind === 'identities' ? 'identity' : kind === 'edge-routers' ? 'sessions' : 'policy'
const schemas = ['identity', 'policy', 'sessions']

/** What all replicas follow: rows as they are, and a log of each schema. */
function openOwners() {
  let world: World = emptyWorld
  const names = new Map<string, string>()
  const logs = new Map<string, { kind: EngineKind; id: string; json: Buffer; isUnknown: boolean }[]>(
    schemas.map((schema) => [schema, []]),
  )
  const logOf = (schema: string) => logs.get(schema) ?? []
  return {
    logOf,
    world: () => world,
    nameOf: (kind: string, id: string) => names.get(`${kind} ${id}`) ?? '',
    append(change: Step, name: string, isUnknown: boolean): void {
      const { kind, id, row } = change
      const isUnreadable = isUnknown && kind === 'posture-checks'
      const former = world['posture-checks'].get(id)
      const formerName = world[kind].has(id) ? names.get(`${kind} ${id}`) : undefined
      world = stepWorld(world, change)
      if (kind === 'posture-checks' && row && isUnreadable) {
        const table = new Map(world['posture-checks'])
        table.set(id, {
          ...row,
          attributes: former?.attributes ?? [],
          check: { ...row.check, typeId: 'unknown' },
        })
        world = { ...world, 'posture-checks': table }
      }
      names.set(`${kind} ${id}`, isUnreadable ? (formerName ?? '') : name)
      const json = row ? payloadOf(kind, row as never, name) : Buffer.alloc(0)
      logOf(schemaOf(kind)).push({ kind, id, json, isUnknown: isUnreadable && row !== null })
    },
    heads: (): Positions =>
      Object.fromEntries(schemas.map((schema) => [schema, { timeline: 't', number: logOf(schema).length }])),
  }
}

type Owners = ReturnType<typeof openOwners>

/** The memory of a replica, which follows each schema at its own pace. */
function openReplica(owners: Owners) {
  const state = emptyState()
  const journal = openJournal()
  const positions = new Map<string, number>()
  const memories = new Map(
    schemas.map((schema) => {
      const kinds = engineKinds.filter((kind) => schemaOf(kind) === schema)
      const applied = (upto: Position): void => {
        const touched = state.touches.take()
        if (touched) journal.add({ schema, upto, touched })
      }
      const listener = { changed: () => undefined, applied, loading: () => undefined }
      return [schema, openEngineMemory(state, kinds, listener)] as const
    }),
  )
  for (const schema of schemas) journal.restart(schema, { timeline: 't', number: 0 })
  const apply = (schema: string, count: number): void => {
    const memory = memories.get(schema)
    const from = positions.get(schema) ?? 0
    for (const [at, { isUnknown, ...row }] of owners
      .logOf(schema)
      .slice(from, from + count)
      .entries()) {
      const number = from + at + 1
      const change = { ...row, atMs: 0, number }
      const upto = { timeline: 't', number }
      if (isUnknown) memory?.unknown?.(change, upto)
      else memory?.apply([change], upto)
      positions.set(schema, number)
    }
  }
  const names = new Map([...memories.values()].flatMap((memory) => [...memory.names]))
  return {
    state,
    journal,
    namesOf: (kind: EngineKind) => names.get(kind) ?? new Map<string, string>(),
    apply,
    /** Reads the heads; `later` happens before memory has caught up. */
    refresh(later: () => void): Reached {
      const [heads, readAfter] = [owners.heads(), journal.now()]
      later()
      for (const schema of schemas) apply(schema, (heads[schema]?.number ?? 0) - (positions.get(schema) ?? 0))
      return journal.reach(heads, readAfter)
    },
  }
}

const letter = fc.constantFrom('x', 'y')
/** Some checks are of the second factor: routers get those that ask for it after waking. */
const withCodes = (one: Step): Step => {
  if (one.kind !== 'posture-checks' || one.row?.revision !== 'b') return one
  const promptOnWake = one.row.attributes.length > 0
  return { ...one, row: { ...one.row, check: { ...sampleCheck, typeId: 'MFA', promptOnWake } } }
}
const change = fc.record({
  type: fc.constant('change' as const),
  step: step.map(withCodes),
  name: letter,
  isUnknown: fc.boolean(),
})
const pace = fc.record({ schema: fc.constantFrom(...schemas), count: fc.integer({ min: 0, max: 3 }) })
const action = fc.oneof(
  { weight: 6, arbitrary: change },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('pace' as const), at: fc.integer({ min: 0, max: 1 }), pace }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('read' as const), at: fc.integer({ min: 0, max: 1 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('sync' as const),
      later: fc.array(change, { maxLength: 2 }),
      paces: fc.array(pace, { maxLength: 2 }),
      meanwhile: fc.array(change, { maxLength: 2 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('move' as const), at: fc.integer({ min: 0, max: 1 }) }),
  },
)

test('a router that gets these states and sets, from any replica, never breaks a rule and ends with what it ought to know', async () => {
  let resumed = 0
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 60, size: 'max' }), async (actions) => {
      const owners = openOwners()
      const replicas = [openReplica(owners), openReplica(owners)]
      const violations: string[] = []
      const model = openStrictModel((violation) => violations.push(violation))
      const routerId = 'r1'
      let at = 0
      let reached: { index: number; moment: number; lacks?: Touched } | undefined
      const replica = () => replicas[at] as ReturnType<typeof openReplica>
      const append = ({ step, name, isUnknown }: { step: Step; name: string; isUnknown: boolean }) =>
        owners.append(step, name, isUnknown)

      /** The events, while memory moves on. */
      const collect = (events: Events, meanwhile: () => void): ModelEvent[] => {
        const list: ModelEvent[] = []
        let steps = 0
        for (const event of events) {
          if (++steps === 2) meanwhile()
          if (event) list.push(ModelEvent.decode(ModelEvent.encode(event).finish()))
        }
        return list
      }
      const sync = (later: () => void, meanwhile: () => void): void => {
        const { checkpoint, moment } = replica().refresh(later)
        const { index, timeline } = checkpoint
        if (reached && index <= reached.index) return
        const since = reached && replica().journal.since(reached.moment)
        const touched = since && reached?.lacks ? uniteTouched([reached.lacks, since]) : since
        const changes = touched ? changesOf(replica(), routerId, touched) : 'too much'
        if (changes === 'too much') {
          const events = collect(fullState(replica(), routerId), meanwhile)
          model.replace(DataState.fromPartial({ events, endIndex: BigInt(index), timelineId: timeline }))
          reached = { index, moment }
          return
        }
        const set = {
          changes: changes ? collect(changes, meanwhile) : [],
          index: BigInt(index),
          previousIndex: BigInt(reached?.index ?? 0),
        }
        model.apply(DataStateChangeSet.fromPartial(set))
        reached = { index, moment }
      }
      const move = async (to: number): Promise<void> => {
        at = to
        if (!reached) return
        const { checkpoint, moment } = replica().refresh(() => undefined)
        const { journal, state } = replica()
        const missed = await journal.missedBy(checkpoint.timeline, reached.index, () => undefined)
        const isKnown =
          missed &&
          !isAmbiguous(state, routerId, missed.touched, missed.unsure) &&
          !missed.touched.rows['edge-routers'].has(routerId) &&
          ![...missed.touched.serviceRouters.values()].some((routers) => routers.has(routerId))
        if (isKnown) resumed++
        reached = isKnown ? { index: reached.index, moment, lacks: missed.touched } : undefined
      }

      for (const one of actions) {
        if (one.type === 'change') append(one)
        else if (one.type === 'pace') replicas[one.at]?.apply(one.pace.schema, one.pace.count)
        else if (one.type === 'read') replicas[one.at]?.refresh(() => undefined)
        else if (one.type === 'move') await move(one.at)
        else {
          const advance = () => {
            for (const { schema, count } of one.paces) replica().apply(schema, count)
          }
          const later = () => {
            one.later.forEach(append)
            advance()
          }
          const meanwhile = () => {
            one.meanwhile.forEach(append)
            advance()
          }
          sync(later, meanwhile)
        }
        expect(violations).toEqual([])
      }
      sync(
        () => undefined,
        () => undefined,
      )
      expect(violations).toEqual([])
      expect(differences(naiveModel(owners.world(), routerId, owners.nameOf), model.contents)).toEqual([])
    }),
    { numRuns: 500, endOnFailure: true }, // to shrink it takes minutes,
  )
  expect(resumed).toBeGreaterThan(10)
})
