import type { RowOf, service } from '@overlay/model'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

type Configs = Readonly<Record<string, unknown>>

/**
 * The configs of each service by the names of their types. `types` are ids or names of types, or 'all'. The identity's own
 * config replaces the service's of the same type.
 */
export async function configsFor(
  db: Db,
  services: readonly Pick<RowOf<typeof service>, 'id'>[],
  identityId: string,
  types: readonly string[],
): Promise<ReadonlyMap<string, Configs>> {
  if (types.length === 0 || services.length === 0) return new Map()
  const ids = services.map(({ id }) => id)
  const { rows } = await db.query<{ service_id: string; type: string; data: unknown }>(
    sql`
    with candidate as (
         select s.id as service_id, c.id as config_id, c.config_type_id, 1 as place
           from service s join config c on c.id = any(s.configs)
          where s.id = any(${ids})
          union all
         select service_id, config_id, config_type_id, 0
           from service_config where identity_id = ${identityId} and service_id = any(${ids}))
    select distinct on (service_id, t.id) service_id, t.name as type, c.data
      from candidate
      join config c on c.id = config_id
      join config_type t on t.id = candidate.config_type_id
     where ${types.includes('all')} or t.id = any(${types}) or t.name = any(${types})
     order by service_id, t.id, place`,
    'configs-of-services',
  )
  const configs = new Map<string, Record<string, unknown>>()
  for (const { service_id, type, data } of rows) {
    const ofService = configs.get(service_id) ?? {}
    configs.set(service_id, Object.assign(ofService, { [type]: data }))
  }
  return configs
}
