import type { Tx } from '@overlay/store/postgres'
import { keepAccessToken } from '../store/access-tokens.js'
import { insertRefreshToken } from '../store/oidc-grants.js'
import type { IssuedTokens } from './tokens.js'

/** Stores tokens that are about to be handed out. Callers have locked the API session. */
export async function keepTokens(tx: Tx, apiSessionId: string, issued: IssuedTokens): Promise<void> {
  const { access, refresh, jti } = issued
  if (access !== undefined) {
    const expiresAt = new Date(issued.accessExpiresAt * 1000)
    await keepAccessToken(tx, { apiSessionId, token: access, expiresAt })
  }
  if (refresh !== undefined)
    await insertRefreshToken(tx, { id: jti, apiSessionId, expiresAtSeconds: issued.refreshExpiresAt })
}
