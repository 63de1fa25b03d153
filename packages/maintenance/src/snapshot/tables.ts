import pg from 'pg'

export interface Table {
  readonly name: string
  readonly columns: readonly string[]
}

/** Not in snapshots: migrations and row counts, which are rebuilt; changes and deletions, which belong to a timeline. */
const excluded = ['migration', 'change', 'row_count', 'deleted_entity']

/** The tables of a snapshot, targets of references first. Unlogged tables concern running processes only. */
export async function tablesOf(client: pg.ClientBase, schema: string): Promise<readonly Table[]> {
  const { rows } = await client.query<Table & { parents: readonly string[] }>(
    `select c.relname::text as name,
            array(select a.attname::text from pg_attribute a
                   where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
                   order by a.attnum) as columns,
            array(select distinct p.relname::text from pg_constraint k join pg_class p on p.oid = k.confrelid
                   where k.conrelid = c.oid and k.contype = 'f' and k.confrelid <> c.oid) as parents
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relkind = 'r' and c.relpersistence = 'p' and c.relname <> all($2::text[])
      order by 1`,
    [schema, excluded],
  )
  const sorted: Table[] = []
  let left = rows
  while (left.length > 0) {
    const waiting = new Set(left.map(({ name }) => name))
    const next = left.filter(({ parents }) => !parents.some((parent) => waiting.has(parent)))
    if (next.length === 0) throw new Error(`tables of schema ${schema} refer to each other in a circle`)
    sorted.push(...next.map(({ name, columns }) => ({ name, columns })))
    left = left.filter((table) => !next.includes(table))
  }
  return sorted
}

/** The table with its columns, for COPY. */
export const copyTarget = (schema: string, { name, columns }: Table): string =>
  `${tableName(schema, name)} (${columns.map((column) => pg.escapeIdentifier(column)).join(', ')})`

export const tableName = (schema: string, table: string): string =>
  `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(table)}`
