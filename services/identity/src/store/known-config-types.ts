import type { RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'

/** Selects `id` and `ref`: an API session and a config type that it names. */
export const namedConfigTypes = sql`
  select id, type as ref from api_session, unnest(config_types) as type where type <> 'all'`

/** Stores the config types of these changes. Deletions are left to `forgetConfigTypes`. */
export async function keepConfigTypes(tx: Tx, changes: readonly Change[]): Promise<void> {
  const names = namesIn(changes)
  await tx.query(sql`
    insert into known_config_type (id, name)
    select * from unnest(${[...names.keys()]}::text[], ${[...names.values()]}::text[])
        on conflict (id) do update set name = excluded.name`)
}

/** Stores those that are missing or have another name. Returns which. */
export async function correctConfigTypes(tx: Tx, changes: readonly Change[]): Promise<RowChange[]> {
  const names = namesIn(changes)
  const { rows } = await tx.query<{ id: string; name: string }>(sql`
    select id, name from known_config_type where id = any(${[...names.keys()]})`)
  const stored = new Map(rows.map(({ id, name }) => [id, name]))
  const wrong = changes.filter(({ id }) => names.has(id) && names.get(id) !== stored.get(id))
  await keepConfigTypes(tx, wrong)
  return wrong.map(({ id }) => ({
    kind: 'known-config-types',
    id,
    before: stored.has(id) ? { name: stored.get(id) } : null,
    after: { name: names.get(id) },
  }))
}

function namesIn(changes: readonly Change[]): Map<string, string> {
  const rows = changes.filter(({ json }) => json.length > 0)
  return new Map(rows.map(({ id, json }) => [id, nameIn(json)]))
}

const nameIn = (json: Change['json']): string =>
  (JSON.parse(Buffer.from(json).toString()) as { readonly name: string }).name

/**
 * Deletes config types, and removes them from the API sessions that name them. A login locks the rows of its config
 * types until its session is stored, so that the session is found here or does not name them.
 */
export async function forgetConfigTypes(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
  if (gone.length === 0) return []
  await tx.query(sql`select from known_config_type where id = any(${gone}) order by id for update`)
  await tx.query(sql`delete from known_config_type where id = any(${gone})`)
  const { rows } = await tx.query<{ id: string; before: string[]; after: string[] }>(sql`
    with held as (
         select id, config_types from api_session where config_types && ${gone}::text[] order by id for update)
    update api_session s
       set config_types = array(select type from unnest(held.config_types) with ordinality as list (type, place)
                                 where type <> all(${gone}::text[]) order by place)
      from held where s.id = held.id
 returning s.id, held.config_types as before, s.config_types as after`)
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

/** wire: ids or names become ids; unknown ones are dropped; 'all' is all. Undefined: there are none to lock. */
export function typesNamed(named: readonly string[]): NamedTypes | undefined {
  if (named.length === 0 || named.includes(everything)) return undefined
  return {
    type: sql`
      select id, name from known_config_type where id = any(${named}) or name = any(${named})
       order by id for key share`,
    ids: sql`
      array(select coalesce(by_id.id, by_name.id)
              from unnest(${named}::text[]) with ordinality as named (word, place)
              left join type by_id on by_id.id = word
              left join type by_name on by_name.name = word
             where coalesce(by_id.id, by_name.id) is not null
             group by 1 order by min(place))`,
  }
}

/** The config types of a session that names none to lock. */
export const allOrNone = (named: readonly string[]): string[] =>
  named.includes(everything) ? [everything] : []
