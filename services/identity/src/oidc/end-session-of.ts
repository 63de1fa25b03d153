import { writeChanges } from '@overlay/platform/change-log'
import type { Context } from '@overlay/rpc'
import { endBearerSession, endSessionsOfLogin } from '../store/oidc-grants.js'
import { asIdentity } from './as-identity.js'
import type { OidcDeps } from './oidc-deps.js'
import type { TokenClaims } from './tokens.js'

/** Ends the API session of a token, if it has not ended before. Then routers know, too. */
export async function endSessionOf(deps: OidcDeps, claims: TokenClaims, context: Context): Promise<void> {
  const position = await writeChanges(deps.changeLog, asIdentity(context, claims), (tx) =>
    claims.type === 'id' ? endSessionsOfLogin(tx, claims) : endBearerSession(tx, claims),
  )
  if (position) await deps.waitForFollowers({ id: '', position }, context, ['sessions'])
}
