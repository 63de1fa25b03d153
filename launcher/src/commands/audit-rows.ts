import { withClient } from '@overlay/platform/postgres/migrate'
import { services } from '../servers/schemas.js'

/** Which changes to look for. Absent: all. */
export interface AuditQuery {
  readonly kind?: string | undefined
  /** Id of the changed entity. */
  readonly id?: string | undefined
  /** Name of the changed entity, before or after. */
  readonly name?: string | undefined
  /** Id, name or user name of the author. */
  readonly author?: string | undefined
  readonly request?: string | undefined
  readonly since?: Date | undefined
  readonly limit: number
}

/** One change, as the audit of its schema has it. Times are UTC, in ISO 8601. */
export interface AuditRow {
  readonly schema: string
  readonly at: string
  readonly kind: string
  readonly entity_id: string
  readonly before: Readonly<Record<string, unknown>> | null
  readonly after: Readonly<Record<string, unknown>> | null
  readonly request_id: string
  readonly identity_id: string
  /** Null in rows of versions that did not store it. */
  readonly identity_name: string | null
  readonly source_address: string | null
  /** What the author is now. Null: it is deleted, or no identity or router. */
  readonly author_kind: 'identity' | 'router' | null
}

/** The newest changes of all services, newest last. Reads only. */
export const readAudit = (ownerUrl: string, query: AuditQuery): Promise<AuditRow[]> =>
  withClient(ownerUrl, async (client) => {
    await client.query('begin transaction isolation level repeatable read read only')
    const { rows } = await client.query<{ row: AuditRow }>(statement, [
      query.kind ?? null,
      query.id ?? null,
      query.name ?? null,
      query.author ?? null,
      query.request ?? null,
      query.since ?? null,
      query.limit,
    ])
    return rows.map(({ row }) => row).reverse()
  })

/** The columns of the author are read from JSON: schemas of versions before them can be read, too. */
const found = services
  .map(
    (schema) => `
   (select '${schema}' as schema, a.at, a.id, a.identity_id, to_jsonb(a) as row
      from ${schema}.audit a
     where ($1::text is null or a.kind = $1)
       and ($2::text is null or a.entity_id = $2)
       and ($3::text is null or $3 in (a.before ->> 'name', a.after ->> 'name'))
       and ($4::text is null or a.identity_id in (select id from author) or to_jsonb(a) ->> 'identity_name' = $4)
       and ($5::text is null or a.request_id = $5)
       and ($6::timestamptz is null or a.at >= $6)
     order by a.at desc, a.id desc
     limit $7)`,
  )
  .join(' union all')

const statement = `
  with author as (
       select $4 as id
        union select id from identity.identity where name = $4
        union select identity_id from identity.authenticator where username = $4
        union select id from sessions.router where name = $4),
       found as (select * from (${found}) as every_schema order by at desc, schema, id desc limit $7)
select f.row - 'id' - 'number' || jsonb_build_object(
         'schema', f.schema,
         'at', to_char(f.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
         'identity_name', coalesce(nullif(f.row ->> 'identity_name', ''), i.name, r.name, f.row ->> 'identity_name'),
         'author_kind', case when r.id is not null then 'router' when i.id is not null then 'identity' end) as row
  from found f
  left join identity.identity i on i.id = f.identity_id
  left join sessions.router r on r.id = f.identity_id
 order by f.at desc, f.schema, f.id desc`
