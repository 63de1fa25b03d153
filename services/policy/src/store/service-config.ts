import {
  type assignedConfig,
  config as configEntity,
  referenceTo,
  type SchemaValue,
  service,
} from '@overlay/model'
import { Fault } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import { allPages } from '@overlay/store/kind-store'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'

/** A config that one identity uses for a service in place of the service's own; there is at most one of each type. */
export type ServiceConfig = {
  readonly identityId: string
  readonly serviceId: string
  readonly configTypeId: string
  readonly configId: string
}

type Pairs = readonly Pick<ServiceConfig, 'serviceId' | 'configId'>[]

const columns = sql`identity_id as "identityId", service_id as "serviceId",
  config_type_id as "configTypeId", config_id as "configId"`

/** Replaces the identity's configs of the same types. wire: the service need not exist. */
export async function putServiceConfigs(tx: Tx, identityId: string, pairs: Pairs): Promise<RowChange[]> {
  const changes: RowChange[] = []
  const { rows: configs } = await tx.query<{ id: string; type: string }>(sql`
    select id, config_type_id as type from config
     where id = any(${pairs.map(({ configId }) => configId)}) order by id for key share`)
  const types = new Map(configs.map(({ id, type }) => [id, type]))
  await lockServiceConfigs(tx, sql`identity_id = ${identityId}`)
  for (const { serviceId, configId } of pairs) {
    const type = types.get(configId)
    if (type === undefined) throw new Fault('NOT_FOUND', `config with id ${configId} not found`)
    const key = sql`identity_id = ${identityId} and service_id = ${serviceId} and config_type_id = ${type}`
    const { rows: replaced } = await tx.query<ServiceConfig>(
      sql`select ${columns} from service_config where ${key} for update`,
    )
    const { rows } = await tx.query<ServiceConfig>(sql`
      insert into service_config (identity_id, service_id, config_type_id, config_id)
      values (${identityId}, ${serviceId}, ${type}, ${configId})
          on conflict (identity_id, service_id, config_type_id) do update set config_id = excluded.config_id
   returning ${columns}`)
    const after = onlyRow(rows)
    changes.push(changeOf(after, replaced[0] ?? null, after))
  }
  return changes
}

/** wire: removes any config of the same type that is set for the service. */
export const removeServiceConfigs = (tx: Tx, identityId: string, pairs: Pairs): Promise<RowChange[]> =>
  deleteServiceConfigs(
    tx,
    sql`identity_id = ${identityId} and (service_id, config_type_id) in (
        select service_id, config_type_id
          from unnest(${pairs.map(({ serviceId }) => serviceId)}::text[],
                      ${pairs.map(({ configId }) => configId)}::text[]) as named (service_id, config_id)
          join config on config.id = config_id)`,
  )

export async function deleteServiceConfigs(tx: Tx, which: Sql): Promise<RowChange[]> {
  await lockServiceConfigs(tx, which)
  const { rows } = await tx.query<ServiceConfig>(
    sql`delete from service_config where ${which} returning ${columns}`,
  )
  return rows.map((row) => changeOf(row, row, null))
}

const lockServiceConfigs = (tx: Tx, which: Sql): Promise<unknown> =>
  tx.query(sql`
    select from service_config where ${which} order by identity_id, service_id, config_type_id for update`)

/** In wire shape. wire: GET omits configs for services that do not exist. */
export async function listServiceConfigs(
  db: Db,
  identityId: string,
): Promise<SchemaValue<typeof assignedConfig>[]> {
  const { rows } = await db.query<{
    serviceId: string
    service: string
    configId: string
    config: string
  }>(sql`
    select service_id as "serviceId", s.name as service, config_id as "configId", c.name as config
      from service_config join config c on c.id = config_id join service s on s.id = service_id
     where identity_id = ${identityId} order by service_id, service_config.config_type_id`)
  return rows.map((row) => ({
    ...row,
    service: referenceTo(service, row.serviceId, row.service),
    config: referenceTo(configEntity, row.configId, row.config),
  }))
}

/** One of the identities and services that use a config so. */
export async function userOfConfig(
  tx: Tx,
  configId: string,
): Promise<Pick<ServiceConfig, 'identityId' | 'serviceId'> | undefined> {
  const { rows } = await tx.query<ServiceConfig>(
    sql`select ${columns} from service_config where config_id = ${configId} limit 1`,
  )
  return rows[0]
}

const idOf = ({ identityId, serviceId, configTypeId }: ServiceConfig): string =>
  `${identityId}/${serviceId}/${configTypeId}`

const changeOf = (
  row: ServiceConfig,
  before: ServiceConfig | null,
  after: ServiceConfig | null,
): RowChange => ({ kind: 'service-configs', id: idOf(row), before, after, payload: after })

/** Loads all rows for followers, or those with these ids, in the order of identities. */
export async function* loadServiceConfigs(
  db: Db,
  ids?: readonly string[],
): AsyncIterable<{ id: string; json: object }> {
  const named = ids ? sql`identity_id = any(${ids.map((id) => id.split('/')[0])})` : sql`true`
  const all = allPages<ServiceConfig>((last, limit) =>
    db.query(sql`
      select ${columns} from service_config
       where (identity_id, service_id, config_type_id)
             > (${last?.identityId ?? ''}, ${last?.serviceId ?? ''}, ${last?.configTypeId ?? ''})
         and ${named}
       order by identity_id, service_id, config_type_id limit ${limit}`),
  )
  for await (const row of all) if (!ids || ids.includes(idOf(row))) yield { id: idOf(row), json: row }
}
