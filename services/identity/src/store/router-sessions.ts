import { randomUUID } from 'node:crypto'
import { newId } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { digestOf, lockedFirst, type Session, sessionColumns } from './api-sessions.js'
import { typesNamed } from './config-types.js'

/** The API session of a router, and how its identity hosts services. */
export interface RouterSession extends Session {
  readonly hosting: object
}

const hosting = sql`
  json_build_object(
    'defaultHostingCost', i.default_hosting_cost, 'defaultHostingPrecedence', i.default_hosting_precedence,
    'serviceHostingCosts', i.service_hosting_costs, 'serviceHostingPrecedences', i.service_hosting_precedences,
    'appData', i.app_data)`

/**
 * Opens the API session of a router, or finds it. Its control channel has authenticated the router, so there is no
 * second factor. No config types: those that it had, or all. Undefined: there is no such identity, or it is disabled.
 */
export async function openRouterSession(
  db: Db,
  routerId: string,
  configTypes: readonly string[],
): Promise<RouterSession | undefined> {
  const token = randomUUID()
  const types = typesNamed(configTypes)
  const { rows } = await db.query<RouterSession>(
    sql`
    with ${types ? sql`type as (${types.type}),` : sql``}
         person as (
         select * from identity
          where id = ${routerId} and type = 'Router' ${types ? lockedFirst : sql``}
            and (disabled_at is null or disabled_until <= clock_timestamp()) for share),
         s as (
         insert into api_session (id, token, token_digest, identity_id, authenticator_id, ip_address, config_types,
                                  is_mfa_complete, method)
         select ${newId('cuid')}, ${token}, ${digestOf(token)}, person.id, '', '',
                ${types?.ids ?? ['all']}, true, 'router'
           from person
             on conflict (identity_id) where method = 'router' do update
            set config_types = case when ${configTypes.length > 0} then excluded.config_types
                                    else api_session.config_types end,
                last_activity_at = greatest(api_session.last_activity_at, now())
      returning *)
  select ${sessionColumns}, ${hosting} as hosting
    from s, person i, auth_policy p, stream where p.id = i.auth_policy_id`,
    `open-router-session${types ? '-with-types' : ''}`,
  )
  return rows[0]
}
