import { defineEntity } from '@overlay/model'
import { integer, text } from '@overlay/model/schema'
import { expect, test } from 'vitest'
import { kind } from './kind.js'

const thing = defineEntity({
  kind: 'things',
  singular: 'thing',
  owner: 'policy',
  fields: {},
  links: {},
  shows: { always: { size: integer }, sometimes: { note: text } },
})

test('a view that does not return what the definition shows does not compile', () => {
  kind(thing, { view: async (_, rows) => rows.map(() => ({ size: 1 })) })
  kind(thing, { view: async (_, rows) => rows.map(() => ({ size: 1, note: 'a' })) })
  // @ts-expect-error a member is missing
  kind(thing, { view: async (_, rows) => rows.map(() => ({ note: 'a' })) })
  // @ts-expect-error a member has another type
  kind(thing, { view: async (_, rows) => rows.map(() => ({ size: '1' })) })
  // @ts-expect-error a member is not declared
  kind(thing, { view: async (_, rows) => rows.map(() => ({ size: 1, weight: 2 })) })
  // @ts-expect-error a spread member is not declared
  kind(thing, { view: async (_, rows) => rows.map(() => ({ size: 1, ...{ weight: 2 } })) })
})

test('a kind that always shows members beside its fields has a view', () => {
  expect(() => kind(thing)).toThrow('things: no view')
})
