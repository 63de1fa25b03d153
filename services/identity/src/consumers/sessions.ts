import { identity } from '@overlay/model'
import { pushAll } from '@overlay/platform/async'
import type { Effects, RowChange } from '@overlay/platform/change-log'
import { type AnyRow, changeOf, columnsOf, rowOf } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import { endSessions } from '../store/api-sessions.js'
import { removeAuthenticators } from '../store/authenticators.js'

/** The members of an edge router that mean something here. */
interface Told {
  readonly name: string
  readonly isTunnelerEnabled: boolean
}

/** A tunneling router acts as an identity: of its id and name, coming and going with it. */
export const routerEffects: Effects = {
  kinds: ['edge-routers'],

  async apply(tx, changes) {
    const own: RowChange[] = []
    for (const { id, json } of changes) pushAll(own, await follow(tx, id, toldIn(json)))
    return own
  },

  async reload(tx, rows) {
    const own = await removeRouterIdentities(tx, sql`id not in (${rows.ids('edge-routers')})`)
    for await (const page of rows.pages('edge-routers'))
      for (const { id, json } of page) pushAll(own, await follow(tx, id, toldIn(json)))
    return own
  },
}

const toldIn = (json: Change['json']): Told | undefined =>
  json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as Told) : undefined

const follow = (tx: Tx, id: string, told: Told | undefined): Promise<RowChange[]> =>
  told?.isTunnelerEnabled ? keep(tx, id, told.name) : removeRouterIdentities(tx, sql`id = ${id}`)

const columns = columnsOf(identity)
const find = async (tx: Tx, which: Sql): Promise<AnyRow[]> => {
  const { rows } = await tx.query(sql`select ${columns} from identity where ${which} for update`)
  return rows.map((row) => rowOf(identity, row))
}

/**
 * A name that another identity has gets the id behind it: the router exists already, and cannot be refused any more. It
 * stays so when the name becomes free.
 */
async function keep(tx: Tx, id: string, name: string): Promise<RowChange[]> {
  const [before] = await find(tx, sql`id = ${id}`)
  const { rows } = await tx.query(sql`
    with wanted as (
         select case when exists (select from identity where name = ${name} and id <> ${id})
                     then ${`${name}-${id}`} else ${name} end as name)
    insert into identity (id, name, type, is_admin, auth_policy_id)
    select ${id}, name, 'Router', false, 'default' from wanted
        on conflict (id) do update set name = excluded.name, updated_at = clock_timestamp()
     where identity.type = 'Router' and identity.name not in (${name}, ${`${name}-${id}`})
 returning ${columns}`)
  return rows.map((row) => changeOf(identity, id, before ?? null, rowOf(identity, row)))
}

/** With all that hangs on them. Other identities are not touched. */
export async function removeRouterIdentities(tx: Tx, which: Sql): Promise<RowChange[]> {
  const gone = await find(tx, sql`type = 'Router' and ${which}`)
  const ids = gone.map(({ id }) => id)
  if (ids.length === 0) return []
  const others = [
    ...(await endSessions(tx, sql`identity_id = any(${ids})`)),
    ...(await removeAuthenticators(tx, sql`identity_id = any(${ids})`)),
  ]
  await tx.query(sql`delete from identity where id = any(${ids})`)
  return [...others, ...gone.map((row) => changeOf(identity, row.id, row, null))]
}
