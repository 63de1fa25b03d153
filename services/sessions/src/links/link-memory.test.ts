import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { LinkRow } from '../store/link.js'
import { openLinkMemory } from './link-memory.js'

const rowOf = (id: string, version: number): LinkRow => ({
  id,
  version,
  sourceId: 'a',
  destinationId: 'b',
  protocol: 'tls',
  dialAddress: '',
  iteration: 1,
  staticCost: 1,
  sourceLatencyMs: 2,
  destinationLatencyMs: 3,
  isDown: false,
})

/** A memory, and what its listener has been told. */
function openMemory() {
  const shown = new Map<string, number>()
  const memory = openLinkMemory({
    changed: ({ id, version }) => shown.set(id, version),
    deleted: ({ id }) => shown.delete(id),
  })
  return { shown, ...memory }
}

const versions = (rows: Iterable<LinkRow>) =>
  Object.fromEntries([...rows].map((row) => [row.id, row.version]))

test('a change that arrives after the deletion of its row has no effect', () => {
  const memory = openMemory()
  memory.apply([rowOf('l', 1)], [])
  memory.apply([], [{ id: 'l', version: 2 }])
  memory.apply([rowOf('l', 2)], [])
  expect(versions(memory.all())).toEqual({})
  memory.apply([rowOf('l', 3)], [])
  expect(versions(memory.all())).toEqual({ l: 3 })
})

test('a load replaces all rows but those that changed after it began', () => {
  const memory = openMemory()
  memory.apply([rowOf('old', 1), rowOf('kept', 2), rowOf('deleted', 3)], [])
  const end = memory.startLoad()
  memory.apply([rowOf('new', 5)], [{ id: 'deleted', version: 3 }])
  end([rowOf('kept', 4), rowOf('deleted', 3)])
  expect(versions(memory.all())).toEqual({ kept: 4, new: 5 })
  expect(Object.fromEntries(memory.shown)).toEqual({ kept: 4, new: 5 })
  expect(versions(memory.of('a'))).toEqual({ kept: 4, new: 5 })
})

test('changes in any order lead to the same rows and sums', () => {
  const history = fc.array(fc.record({ id: fc.constantFrom('l', 'm', 'n'), isDeleted: fc.boolean() }))
  fc.assert(
    fc.property(
      history.chain((changes) => {
        const numbered = changes.map((change, i) => ({ ...change, version: i + 1 }))
        return fc.record({
          changes: fc.constant(numbered),
          shuffled: fc.shuffledSubarray(numbered, { minLength: changes.length }),
        })
      }),
      ({ changes, shuffled }) => {
        const [inOrder, outOfOrder] = [openMemory(), openMemory()]
        for (const { id, version, isDeleted } of changes)
          inOrder.apply(isDeleted ? [] : [rowOf(id, version)], isDeleted ? [{ id, version }] : [])
        for (const { id, version, isDeleted } of shuffled)
          outOfOrder.apply(isDeleted ? [] : [rowOf(id, version)], isDeleted ? [{ id, version }] : [])
        expect(versions(outOfOrder.all())).toEqual(versions(inOrder.all()))
        expect(outOfOrder.sums()).toEqual(inOrder.sums())
        expect(Object.fromEntries(outOfOrder.shown)).toEqual(versions(outOfOrder.all()))
        expect(outOfOrder.sums().versions).toBe(
          [...outOfOrder.all()].reduce((sum, { version }) => sum + version, 0),
        )
      },
    ),
  )
})
