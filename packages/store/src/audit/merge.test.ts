import { expect, test } from 'vitest'
import { cursorIn, formatCursor, parseCursor } from './cursor.js'
import { mergePages, type SchemaPage } from './merge.js'

/** Changes at these times, one a millisecond. */
const page = (schema: string, times: readonly number[], rest: Partial<SchemaPage> = {}): SchemaPage => ({
  schema,
  changes: times.map((atMs) => ({ atMs, id: atMs, entityType: '', json: '' })),
  isComplete: true,
  settledMs: 100,
  ...rest,
})
const shown = (pages: readonly SchemaPage[], oldestFirst: boolean, limit = 10) => {
  const { changes, next } = mergePages(pages, { oldestFirst, limit })
  return [changes.map(({ schema, id }) => `${schema}${id}`), next && formatCursor(next)]
}

test('changes of all schemas are in the order of time, schema and id', () => {
  const pages = [page('b', [5, 3]), page('a', [4, 3])]
  expect(shown(pages, false)).toEqual([['b5', 'a4', 'b3', 'a3'], undefined])
})

test('a page ends where a schema has more changes than it shows', () => {
  const pages = [page('a', [9, 5], { isComplete: false }), page('b', [7, 4])]
  expect(shown(pages, false)).toEqual([['a9', 'b7', 'a5'], '5.a.5'])
})

test('a page of the limit ends at its last change', () => {
  expect(shown([page('a', [9, 5]), page('b', [7, 4])], false, 2)).toEqual([['a9', 'b7'], '7.b.7'])
})

test('oldest first, a page ends where one schema is not settled', () => {
  const pages = [page('a', [1, 8]), page('b', [2], { settledMs: 5 })]
  expect(shown(pages, true)).toEqual([['a1', 'b2'], '5..0'])
})

test('a cursor of a schema is before or behind the changes of others at its time', () => {
  const cursor = { atMs: 1, schema: 'b', id: 7 }
  expect(['a', 'b', 'c'].map((schema) => cursorIn(schema, cursor).id)).toEqual([
    Number.MAX_SAFE_INTEGER,
    7,
    0,
  ])
})

test.each(['', 'x', '1.2', '1.a.', '1.a.-1', '12345678901234.a.1', '1.A.1', "1.a'.1"])(
  'the cursor %j is refused',
  (cursor) => {
    expect(() => parseCursor('after', cursor)).toThrow(
      expect.objectContaining({ code: 'COULD_NOT_VALIDATE' }),
    )
  },
)
