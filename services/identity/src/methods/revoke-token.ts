import type { Methods, OidcServiceService } from '@overlay/rpc'
import { endSessionOf } from '../oidc/end-session-of.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'

export const revokeToken =
  (deps: OidcDeps): Methods<OidcServiceService>['revokeToken'] =>
  async ({ clientId, token }, context) => {
    const claims = await deps.tokens.read(token)
    if (!claims || claims.type === 'id' || claims.isExpired || claims.clientId !== clientId)
      return { position: undefined }
    return { position: await endSessionOf(deps, claims, context) }
  }
