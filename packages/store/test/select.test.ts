import { defineEntity, field } from '@overlay/model'
import { roleCaseEntities, roleCases } from '@overlay/model/testing'
import type { Selection } from '@overlay/rpc'
import pg from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { roleFilterOf, selectionOf } from '../src/kind-store/select.js'

const gadget = defineEntity({
  kind: 'gadgets',
  singular: 'gadget',
  owner: 'policy',
  fields: {
    ownerId: field.ref('owners', { symbolName: 'owner' }),
    parts: field.strings(),
    roleAttributes: field.attributes(),
  },
  links: {},
})

const part = defineEntity({ kind: 'parts', singular: 'part', owner: 'policy', fields: {}, links: {} })

const client = new pg.Client({ connectionString: process.env.OVERLAY_TEST_POSTGRES_URL })
beforeAll(async () => {
  await client.connect()
  await client.query(`
    create temp table gadget (id text collate "C" primary key, owner_id text, parts text[], role_attributes text[]);
    insert into gadget values ('i1', 'o1', '{p1,p2}'), ('i2', 'o1', '{p2}'), ('i3', 'o2', '{}')`)
  for (const { id, roleAttributes } of roleCaseEntities)
    await client.query(sql`update gadget set role_attributes = ${roleAttributes} where id = ${id}`)
})
afterAll(() => client.end())

async function found(where: Sql): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(sql`select id from gadget where ${where} order by id`)
  return rows.map(({ id }) => id)
}

const nothing: Selection = { ids: [], roles: [], symbol: '', value: '' }

test.each(roleCases)('in a role list $rule', async ({ roles, semantic, selected }) => {
  const selection = { ...nothing, roles: [{ roles: [...roles], semantic }] }
  expect(await found(selectionOf(selection, gadget))).toEqual(selected)
})

test.each([
  ['nothing selects nothing', nothing, []],
  ['ids', { ...nothing, ids: ['i1', 'i9'] }, ['i1']],
  ['an id that no text can hold selects nothing', { ...nothing, ids: ['i1\0'] }, []],
  ['the value of a symbol', { ...nothing, symbol: 'owner', value: 'o1' }, ['i1', 'i2']],
  ['a member of a set', { ...nothing, symbol: 'parts', value: 'p2' }, ['i1', 'i2']],
  ['a value that no text can hold selects nothing', { ...nothing, symbol: 'owner', value: '\0' }, []],
  [
    'each list has its own semantic, and all is a union',
    {
      ids: ['i3'],
      roles: [
        { roles: ['#a', '#b'], semantic: 'AllOf' },
        { roles: ['#all', '#zzz'], semantic: 'AnyOf' },
      ],
      symbol: 'owner',
      value: 'o9',
    },
    ['i1', 'i2', 'i3'],
  ],
])('a selection: %s', async (_rule, selection, expected) => {
  expect(await found(selectionOf(selection, gadget))).toEqual(expected)
})

test('a link by a symbol that the kind does not have is our own mistake', () => {
  expect(() => selectionOf({ ...nothing, symbol: 'nobody', value: 'x' }, gadget)).toThrow(
    "gadgets: no symbol 'nobody' to select by",
  )
})

test('a kind without attributes is selected by id only', () => {
  const selection = { ...nothing, roles: [{ roles: ['#a'], semantic: 'AnyOf' }] }
  expect(selectionOf(selection, part).text).toBe('false')
})

test.each([
  [['#a', '#b'], '', ['i1']],
  [['#a', '#b'], 'AllOf', ['i1']],
  [['#a', '#b'], 'anyof', ['i1', 'i2']],
  [['#zzz', '#yyy'], 'AnyOf', []],
  [['#a', '#b', '@i3', '@i9'], 'ALLOF', ['i1', 'i3']],
  [['#all'], 'AllOf', ['i2']],
  [['#a,#b'], 'AnyOf', []],
  [['#'], 'AnyOf', []],
])('the role filter %j %s', async (entries, semantic, expected) => {
  expect(await found(roleFilterOf(entries, semantic, gadget))).toEqual(expected)
})

test.each([
  [['#a', 'x', '', '#\0'], '', { field: 'roleFilter', value: ['x', '', '#\0'] }],
  [['#a'], 'SomeOf', { field: 'roleSemantic', value: 'SomeOf' }],
])('the role filter %j %s is refused', (entries, semantic, detail) => {
  expect(() => roleFilterOf(entries, semantic, gadget)).toThrow(
    expect.objectContaining({ code: 'COULD_NOT_VALIDATE', detail: expect.objectContaining(detail) }),
  )
})
