import sql, { type Sql } from 'sql-template-tag'
import type { TokenFacts } from '../domain/oidc-claims.js'

/** What is stored of the tokens for a code, beside their API session. */
export interface FirstTokens {
  readonly grant: Pick<
    TokenFacts,
    'scopes' | 'nonce' | 'fingerprints' | 'envInfo' | 'sdkInfo' | 'authTimeSeconds'
  >
  readonly accessToken: string
  readonly accessExpiresAtSeconds: number
  /** By the id in its claim jti. */
  readonly refresh?: { readonly id: string; readonly expiresAtSeconds: number } | undefined
}

/** Further parts of the statement that inserts the API session `s` for `login`, each after a comma. */
export const firstTokenRows = ({
  grant,
  accessToken,
  accessExpiresAtSeconds,
  refresh,
}: FirstTokens): Sql => sql`,
         granted as (
         insert into oidc_grant (api_session_id, scopes, nonce, fingerprints, env_info, sdk_info, auth_time,
                                 code_digest, code_challenge)
         select s.id, ${grant.scopes}::text[], ${grant.nonce}, ${grant.fingerprints}::text[],
                ${jsonOf(grant.envInfo)}::jsonb, ${jsonOf(grant.sdkInfo)}::jsonb,
                to_timestamp(${grant.authTimeSeconds}::float8), login.code_digest, login.code_challenge
           from s, login),
         accessible as (
         insert into access_token (api_session_id, token, expires_at)
         select s.id, ${accessToken}, to_timestamp(${accessExpiresAtSeconds}::float8) from s)${refreshRow(refresh)}`

const refreshRow = (refresh: FirstTokens['refresh']): Sql =>
  refresh
    ? sql`,
         refreshable as (
         insert into refresh_token (id, api_session_id, expires_at)
         select ${refresh.id}::uuid, s.id, to_timestamp(${refresh.expiresAtSeconds}::float8) from s)`
    : sql``

const jsonOf = (info: object | null): string | null => (info ? JSON.stringify(info) : null)
