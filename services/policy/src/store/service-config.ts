import type { Db, RowChange, Tx } from '@overlay/platform'
import sql, { type Sql } from 'sql-template-tag'

export interface ServiceConfig {
  readonly identity_id: string
  readonly service_id: string
  readonly config_type_id: string
  readonly config_id: string
}

/** What followers get of an identity's own config for a service. */
export const toldOf = ({ identity_id, service_id, config_type_id, config_id }: ServiceConfig) => ({
  identityId: identity_id,
  serviceId: service_id,
  configTypeId: config_type_id,
  configId: config_id,
})

export const keyOf = ({ identity_id, service_id, config_type_id }: ServiceConfig): string =>
  `${identity_id}/${service_id}/${config_type_id}`

export function serviceConfigChange(before: ServiceConfig | null, after: ServiceConfig | null): RowChange {
  const row = after ?? before
  if (!row) throw new Error('a change without a row')
  const told = after && toldOf(after)
  return { kind: 'service-configs', id: keyOf(row), before: before && toldOf(before), after: told, told }
}

export async function deleteServiceConfigs(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<ServiceConfig & Record<string, unknown>>(
    sql`delete from service_config where ${which} returning identity_id, service_id, config_type_id, config_id`,
  )
  return rows.map((row) => serviceConfigChange(row, null))
}

const atOnce = 1000

/** For followers, in the order of identities. */
export async function* allServiceConfigs(db: Db): AsyncIterable<{ id: string; json: object }> {
  let last: readonly string[] = ['', '', '']
  for (;;) {
    const { rows } = await db.query<ServiceConfig & Record<string, unknown>>(sql`
      select identity_id, service_id, config_type_id, config_id from service_config
       where (identity_id, service_id, config_type_id) > (${last[0]}, ${last[1]}, ${last[2]})
       order by identity_id, service_id, config_type_id limit ${atOnce}`)
    for (const row of rows) yield { id: keyOf(row), json: toldOf(row) }
    const end = rows.at(-1)
    if (!end || rows.length < atOnce) return
    last = [end.identity_id, end.service_id, end.config_type_id]
  }
}
