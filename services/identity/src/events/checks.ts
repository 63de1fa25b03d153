import { identity } from '@overlay/model'
import {
  type Check,
  copies,
  type Followed,
  type History,
  heard,
  type Names,
  type RowChange,
  references,
  type Source,
  type Tx,
} from '@overlay/platform'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { changeIdentity } from '../store/identity-rows.js'
import { correctCas } from '../store/known-cas.js'
import { authorityEffects, forgetCas } from './authorities.js'
import { removeRouterIdentities, routerEffects } from './routers.js'

export interface Checked {
  readonly history: History
  readonly names: Names
  readonly sources: { readonly sessions: Source; readonly pki: Source }
  readonly followed: Followed
  readonly log: Logger
}

/** What holds between this schema and others, besides what the database itself sees to. */
export function checksOf({ history, names, sources, followed, log }: Checked): readonly Check[] {
  const grounds = { history, names, followed }
  return [
    heard(followed),
    copies(history, { source: sources.pki, followed, kinds: authorityEffects.kinds, apply: correctCas }, log),
    ...Object.entries(reliers).map(([what, from]) =>
      references(grounds, {
        what,
        from,
        to: ['cas'],
        repair: (tx, gone) => forgetCas(tx, sql`= any(${gone})`),
      }),
    ),
    copies(history, { source: sources.sessions, followed, ...routerEffects }, log),
    references(grounds, {
      what: 'router identity',
      from: sql`select id, id as ref from identity where type = 'Router'`,
      to: ['edge-routers'],
      repair: (tx, gone) => removeRouterIdentities(tx, sql`id = any(${gone})`),
    }),
    references(grounds, {
      what: identity.singular,
      from: sql`
        select id, service as ref
          from identity, jsonb_object_keys(service_hosting_costs || service_hosting_precedences) as service`,
      to: ['services'],
      repair: forgetHosting,
    }),
    references(grounds, {
      what: 'apiSession',
      from: sql`select id, type as ref from api_session, unnest(config_types) as type where type <> 'all'`,
      to: ['config-types'],
      repair: forgetConfigTypes,
    }),
  ]
}

/** Who relies on an authority of somebody else. */
const reliers = {
  'known ca': sql`select id, id as ref from known_ca`,
  authenticator: sql`select id, ca_id as ref from authenticator where ca_id is not null`,
  apiSession: sql`select id, ca_id as ref from api_session where ca_id is not null`,
}

async function forgetHosting(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string }>(sql`
    select id from identity
     where service_hosting_costs ?| ${gone}::text[] or service_hosting_precedences ?| ${gone}::text[] order by id`)
  const changes: RowChange[] = []
  for (const { id } of rows) {
    const sets = sql`
      service_hosting_costs = service_hosting_costs - ${gone}::text[],
      service_hosting_precedences = service_hosting_precedences - ${gone}::text[]`
    const change = await changeIdentity(tx, id, sets)
    if (change) changes.push(change)
  }
  return changes
}

async function forgetConfigTypes(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
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
