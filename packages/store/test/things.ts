import { type FilterSymbol, parseQuery } from '@overlay/model'
import pg from 'pg'
import sql, { type Sql } from 'sql-template-tag'
import { orderOf } from '../src/kind-store/order.js'
import { whereOf } from '../src/kind-store/where.js'

/** One symbol of each type, with and without nulls, over a table of a few telling rows. */
export const symbols = new Map<string, FilterSymbol>([
  ['id', { column: 'id', type: 'string', notNull: true }],
  ['name', { column: 'name', type: 'string', notNull: true }],
  ['note', { column: 'note', type: 'string' }],
  ['shout', { column: "upper(name) || '!'", type: 'string' }],
  ['label', { column: 'name collate "und-x-icu"', type: 'string' }],
  ['rank', { column: 'rank', type: 'number', notNull: true }],
  ['weight', { column: 'weight', type: 'number' }],
  ['isSystem', { column: 'is_system', type: 'bool', notNull: true }],
  ['verified', { column: 'verified', type: 'bool' }],
  ['createdAt', { column: 'created_at', type: 'datetime', notNull: true }],
  ['seenAt', { column: 'seen_at', type: 'datetime' }],
  ['words', { column: 'words', type: 'strings' }],
  ['tags', { column: 'tags', type: 'tags' }],
])

const table = `
  create temp table thing (
    id         text collate "C" primary key,
    name       text collate "C" not null unique,
    note       text collate "C",
    rank       smallint not null,
    weight     float8,
    is_system  boolean not null,
    verified   boolean,
    created_at timestamptz(3) not null,
    seen_at    timestamptz(3),
    words      text[] not null,
    tags       jsonb not null
  );
  create index on thing using gin (words);
  insert into thing values
    ('a', 'alpha', null, 5, null, true, true, '2020-01-01T00:00:00Z', null, '{one,two}',
     '{"loc": "east", "n": 1, "half": 1.5, "ok": true, "five": "5", "gone": null}'),
    ('b', 'Beta', 'x_y%z\\w', -1, 2.5, false, false, '2021-06-15T12:00:00.123Z', '2022-01-01T00:00:00Z', '{one}',
     '{"loc": "west", "n": 5, "ok": false, "five": 5}'),
    ('c', 'gamma "q"', '', 32767, 1e300, false, null, '2022-12-31T23:59:59.999Z', '2020-01-01T00:00:00Z', '{}', '{}'),
    ('d', 'Ünder', '12', 12, -0.5, false, null, '2023-01-01T00:00:00Z', null, '{5,two,zero}', '{"loc": "East", "n": -2, "ok": "yes"}')`

export interface Things extends AsyncDisposable {
  query<Row extends pg.QueryResultRow>(query: Sql): Promise<Row[]>
  /** The ids of the rows that the filter admits, in its order, as one word. */
  find(filter: string): Promise<string>
}

export async function openThings(): Promise<Things> {
  const client = new pg.Client({ connectionString: process.env.OVERLAY_TEST_POSTGRES_URL })
  await client.connect()
  await client.query(table)
  const query = async <Row extends pg.QueryResultRow>(statement: Sql): Promise<Row[]> =>
    (await client.query<Row>(statement)).rows
  return {
    query,
    async find(filter) {
      const { where, sort } = parseQuery(filter, { sort: '', limit: '', offset: '' })
      const rows = await query(
        sql`select id from thing where ${whereOf(where, symbols)} order by ${orderOf(sort, symbols)}`,
      )
      return rows.map(({ id }) => id).join('')
    },
    [Symbol.asyncDispose]: () => client.end(),
  }
}
