import type { RowChange } from '@overlay/store/change-log'
import type { Db, Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

/** Selects `id` and `ref`: an API session and a config type that it names. */
export const configTypesOfSessions = sql`
  select id, type as ref from api_session, unnest(config_types) as type where type <> 'all'`

/** Selects `id` and `ref`: each config type of this schema. */
export const storedConfigTypes = sql`select id, id as ref from known_config_type`

/** Selects the ids of all config types that this schema stores or names. */
export const configTypeIds = sql`
  select id from known_config_type union select ref from (${configTypesOfSessions}) as named`

/** Stores config types: names by id. */
export async function storeConfigTypes(tx: Tx, names: ReadonlyMap<string, string>): Promise<void> {
  await tx.query(sql`
    insert into known_config_type (id, name)
    select * from unnest(${[...names.keys()]}::text[], ${[...names.values()]}::text[])
        on conflict (id) do update set name = excluded.name`)
}

/** Stores those that are missing or have another name. Returns which. */
export async function correctConfigTypes(tx: Tx, names: ReadonlyMap<string, string>): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string; name: string }>(sql`
    select id, name from known_config_type where id = any(${[...names.keys()]})`)
  const stored = new Map(rows.map(({ id, name }) => [id, name]))
  const wrong = [...names].filter(([id, name]) => name !== stored.get(id))
  await storeConfigTypes(tx, new Map(wrong))
  return wrong.map(([id, name]) => ({
    kind: 'known-config-types',
    id,
    before: stored.has(id) ? { name: stored.get(id) } : null,
    after: { name },
  }))
}

/**
 * Deletes config types, and removes them from the API sessions that name them. A login locks the rows of its config
 * types until its session is stored, so that this finds the session, or the session does not name them.
 */
export async function removeConfigTypes(tx: Tx, ids: readonly string[]): Promise<RowChange[]> {
  if (ids.length === 0) return []
  await tx.query(sql`select from known_config_type where id = any(${ids}) order by id for update`)
  await tx.query(sql`delete from known_config_type where id = any(${ids})`)
  const { rows } = await tx.query<{ id: string; before: string[]; after: string[] }>(sql`
    with locked as (
         select id, config_types from api_session where config_types && ${ids}::text[] order by id for update)
    update api_session s
       set config_types = array(select type from unnest(locked.config_types) with ordinality as list (type, number)
                                 where type <> all(${ids}::text[]) order by number)
      from locked where s.id = locked.id
 returning s.id, locked.config_types as before, s.config_types as after`)
  return rows.map(({ id, before, after }) => ({
    kind: 'api-sessions',
    id,
    before: { configTypes: before },
    after: { configTypes: after },
  }))
}

const everything = 'all'

/** The config types that a login names, in two parts: what locks them, named `type`, and the array of their ids. */
export interface NamedTypes {
  readonly type: Sql
  readonly ids: Sql
}

/**
 * wire: a login names config types by id or name; the session shows ids, without unknown ones; 'all' means all.
 * Undefined: there are none to lock.
 */
export function typesNamed(words: readonly string[]): NamedTypes | undefined {
  if (words.length === 0 || words.includes(everything)) return undefined
  const list = sql`${words}::text[]`
  return { type: lockTypes(list), ids: idsOfWords(list) }
}

/** Locks the config types that an array of words names. */
export const lockTypes = (words: Sql): Sql => sql`
      select id, name from known_config_type where id = any(${words}) or name = any(${words})
       order by id for key share`

/** The ids of config types that an array names; `type` has locked them. */
export const idsOfWords = (words: Sql): Sql => sql`
      array(select coalesce(by_id.id, by_name.id)
              from unnest(${words}) with ordinality as list (word, number)
              left join type by_id on by_id.id = word
              left join type by_name on by_name.name = word
             where coalesce(by_id.id, by_name.id) is not null
             group by 1 order by min(number))`

/** The ids of the config types that a login names, or 'all'. */
export async function configTypesNamed(db: Db, words: readonly string[]): Promise<string[]> {
  const types = typesNamed(words)
  if (!types) return allOrNone(words)
  const { rows } = await db.query<{ ids: string[] }>(
    sql`with type as (${types.type}) select ${types.ids} as ids`,
    'config-types-named',
  )
  return rows[0]?.ids ?? []
}

/** The config types of a session that names none to lock. */
export const allOrNone = (words: readonly string[]): string[] =>
  words.includes(everything) ? [everything] : []
