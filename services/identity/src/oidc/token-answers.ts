import type { Position } from '@overlay/rpc'
import type { IssuedTokens } from './tokens.js'

/** The answer of the token endpoint to a code or a refresh token. */
export const tokenAnswer = ({ access, refresh, id, accessExpiresAt }: IssuedTokens, state = ''): object => ({
  access_token: access,
  token_type: 'Bearer',
  ...(refresh !== undefined && { refresh_token: refresh }),
  expires_in: secondsUntil(accessExpiresAt),
  ...(id !== undefined && { id_token: id }),
  ...(state !== '' && { state }), // wire: the state of the authorization request is in the answer of the token endpoint, too
})

export const secondsUntil = (seconds: number): number => Math.max(Math.floor(seconds - Date.now() / 1000), 0)

/** The scopes of an access token: by default all that were granted. */
export function scopesWithin(granted: readonly string[], requested: readonly string[]): readonly string[] {
  if (requested.some((scope) => !granted.includes(scope)))
    throw new OauthFailure('invalid_scope', 'more scopes than were granted', 'more scopes')
  return requested.length > 0 ? requested : granted
}

export const OFFLINE = 'offline_access'
export const OPENID = 'openid'

/** An error that OAuth defines, for the client. `reason` is for the log and the metric only. */
export class OauthFailure extends Error {
  override readonly name = 'OauthFailure'

  constructor(
    readonly error: 'invalid_request' | 'invalid_grant' | 'invalid_scope' | 'unsupported_grant_type',
    /** May be empty. */
    readonly description: string,
    readonly reason: string,
    /** Whom the refused grant is about, and the write that has ended its API session. */
    readonly about: {
      readonly identityId?: string
      readonly apiSessionId?: string
      readonly position?: Position | undefined
    } = {},
  ) {
    super(description)
  }
}

/** The grant is refused. Clients do not learn why. */
export const refusedGrant = (reason: string, about?: OauthFailure['about']): OauthFailure =>
  new OauthFailure('invalid_grant', 'the grant is not valid', reason, about)

/** wire: a grant of another client is answered with invalid_grant without a description. */
export const otherClient = (about: OauthFailure['about']): OauthFailure =>
  new OauthFailure('invalid_grant', '', 'other client', about)

export const malformed = (description: string): OauthFailure =>
  new OauthFailure('invalid_request', description, 'malformed')
