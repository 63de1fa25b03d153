import { testDatabase } from '@overlay/launcher/testing'
import { type Field, field } from '@overlay/model'
import sql, { type Sql } from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { jsonColumn, jsonTime, markedJson, unmarked } from '../src/kind-store/json-text.js'
import { type Database, openDatabase } from '../src/postgres/database.js'

let database: Awaited<ReturnType<typeof testDatabase>>
let db: Database
beforeAll(async () => {
  database = await testDatabase('identity')
  db = openDatabase(database.urlOf('identity'), 'identity')
})
afterAll(async () => {
  await db[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

async function written(json: Sql | undefined): Promise<string> {
  const { rows } = await db.query<{ json: string }>(sql`select ${json ?? sql`null`} as json`)
  return unmarked(rows[0]?.json ?? '')
}

const texts = ['', 'plain', '"\\/\b\f\n\r\t', '\u0001\u001f\u007f', 'ünder € 🙂 \u2028', '{"a": 1}']
const documents = [
  ...[{}, { a: 1, b: [1, { c: '": , "' }], d: null }, { big: 1e20, half: 0.5, e: 1e21 }],
  ...[{ control: '\u0001', 2: 'x', 1: 'y' }, [], 'word', 7],
]

const cases: readonly (readonly [form: string, field: Field, column: Sql, value: unknown])[] = [
  ...texts.map((value) => ['text', field.string(), sql`${value}::text`, value] as const),
  ...documents.map(
    (value) => ['document', field.object(), sql`${JSON.stringify(value)}::jsonb`, value] as const,
  ),
  ...[0, -7, 2 ** 53, -(2 ** 60)].map(
    (value) => ['number', field.integer(), sql`${String(BigInt(value))}::int8`, value] as const,
  ),
  ...[true, false].map((value) => ['flag', field.bool(), sql`${value}::bool`, value] as const),
  ['set', field.strings(), sql`${['a"b', 'c']}::text[]`, ['a"b', 'c']],
  ['empty set', field.strings(), sql`'{}'::text[]`, null],
  ...['2026-01-02T03:04:05.006Z', '0999-12-31T23:59:59.999Z', '+012345-06-07T08:09:10.000Z'].map(
    (time) => ['time', field.datetime(), sql`${new Date(time)}::timestamptz(3)`, time] as const,
  ),
  ['missing text', field.string({ nullable: true }), sql`null::text`, null],
  ['missing document', field.object(), sql`null::jsonb`, null],
  ['missing number', field.integer({ nullable: true }), sql`null::int4`, null],
  ['missing flag', field.bool(), sql`null::bool`, null],
  ['missing time', field.datetime(), sql`null::timestamptz`, null],
]

test.each(cases)(
  'SQL writes the JSON of a %s as JSON.stringify does: %#',
  async (_form, one, column, value) => {
    const { rows } = await db.query<{ stored: unknown }>(sql`select ${column} as stored`)
    const loaded = one.load(rows[0]?.stored)
    const rendered = JSON.stringify(loaded instanceof Date ? loaded.toISOString() : loaded)
    expect(JSON.parse(rendered)).toEqual(value)
    expect(await written(jsonColumn(column, one))).toBe(rendered)
  },
)

test('a field with a function of its own is not written by SQL', () => {
  expect(jsonColumn(sql`x`, field.coded({ Dial: 1, Bind: 2 }))).toBeUndefined()
  expect(jsonColumn(sql`x`, { ...field.strings(), load: (stored) => stored as string[] })).toBeUndefined()
})

test('of two members with the same name the later one counts, at the place of the first', async () => {
  const text = sql`'{"a": 1, "b": 2, "a": 3}'::text`
  expect(await written(markedJson(text, sql`1 > 0`))).toBe('{"a":3,"b":2}')
  expect(await written(markedJson(text, sql`1 < 0`))).toBe('{"a": 1, "b": 2, "a": 3}')
  expect(await written(jsonTime(sql`'2026-01-02Z'::timestamptz`))).toBe('"2026-01-02T00:00:00.000Z"')
})
