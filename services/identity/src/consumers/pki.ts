import type { Effects, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { endSessions } from '../store/api-sessions.js'
import { removeAuthenticators } from '../store/authenticators.js'
import { keepCas } from '../store/known-cas.js'

/** differs: with an authority go the authenticators that it has certified, and the sessions of both. */
export const authorityEffects: Effects = {
  kinds: ['cas'],

  async apply(tx, changes) {
    const last = [...new Map(changes.map((change) => [change.id, change])).values()]
    await keepCas(tx, last)
    return forgetCas(tx, sql`= any(${last.filter(({ json }) => json.length === 0).map(({ id }) => id)})`)
  },

  async reload(tx, rows) {
    for await (const page of rows.pages('cas')) await keepCas(tx, page)
    return forgetCas(tx, sql`not in (${rows.ids('cas')})`)
  },
}

/** Who relies on an authority has locked it first: either they are seen here, or they see that it has gone. */
export async function forgetCas(tx: Tx, which: Sql): Promise<RowChange[]> {
  const ofThem = sql`ca_id is not null and ca_id ${which}`
  await tx.query(sql`delete from known_ca where id ${which}`)
  // before their sessions and authenticators, as whoever deletes an identity has it
  await tx.query(sql`
    select from identity
     where id in (select identity_id from authenticator where ${ofThem}
                   union select identity_id from api_session where ${ofThem})
     order by id for no key update`)
  const ended = await endSessions(
    tx,
    sql`(${ofThem}) or authenticator_id in (select id from authenticator where ${ofThem})`,
  )
  return [...ended, ...(await removeAuthenticators(tx, ofThem))]
}
