import { identityType, referenceTo } from '@overlay/model'
import { jsonFlag, jsonTime, markedJson } from '@overlay/store/kind-store'
import sql, { raw, type Sql } from 'sql-template-tag'
import { isConnected } from './identity-state.js'

const TYPE = '%'
const typeReference = JSON.stringify(referenceTo(identityType, TYPE, TYPE)) // types are words

/** As the rule of domain/disabled.ts. */
const isDisabled = sql`
  (identity.disabled_at is not null and (identity.disabled_until is null or identity.disabled_until > now()))`

const optionalTime = (column: Sql): Sql => sql`case when ${column} is not null then ${jsonTime(column)} end`

const ofAuthenticator = sql`
  '"' || a.method || '":{"id":' || to_json(a.id)
      || case a.method when 'updb' then ',"username":' || coalesce(to_json(a.username)::text, 'null')
                       else ',"fingerprint":' || coalesce(to_json(a.fingerprint)::text, 'null') end || '}'`
/** Of two with the same method, the parser keeps the later one. */
const authenticators = markedJson(
  sql`'{' || coalesce(string_agg(${ofAuthenticator}, ',' order by a.created_at, a.id), '') || '}'`,
  sql`count(*) > 1`,
)

/** Members that identities show of other tables and of hidden columns, as JSON text over the table. null: left out. */
export const identityMembers = {
  type: sql`replace(${raw(`'${typeReference}'`)}, ${raw(`'${TYPE}'`)}, identity.type)`,
  typeId: sql`to_json(identity.type)::text`,
  disabled: jsonFlag(isDisabled),
  disabledAt: optionalTime(sql`identity.disabled_at`),
  disabledUntil: optionalTime(sql`identity.disabled_until`),
  isMfaEnabled: jsonFlag(sql`(select f.is_verified from second_factor f where f.identity_id = identity.id)`),
  // not exists(): the planner would read all sessions once
  hasApiSession: jsonFlag(sql`
    (select true from api_session s where s.identity_id = identity.id and s.client_id is null limit 1)`),
  hasEdgeRouterConnection: jsonFlag(isConnected),
  authenticators: sql`(select ${authenticators} from authenticator a where a.identity_id = identity.id)`,
} satisfies Readonly<Record<string, Sql>>
