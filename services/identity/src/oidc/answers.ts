import { OauthFailure } from './oauth-failure.js'
import type { IssuedTokens } from './tokens.js'

/** The answer of the token endpoint to a code or a refresh token. */
export const tokenAnswer = ({ access, refresh, id, accessExpiresAt }: IssuedTokens, state = ''): object => ({
  access_token: access,
  token_type: 'Bearer',
  ...(refresh !== undefined && { refresh_token: refresh }),
  expires_in: secondsUntil(accessExpiresAt),
  ...(id !== undefined && { id_token: id }),
  ...(state !== '' && { state }), // wire: here, too
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
