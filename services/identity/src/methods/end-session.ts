import type { Methods, OidcServiceService } from '@overlay/rpc'
import { endSessionOf } from '../oidc/end-session-of.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'

/** differs: a repeated logout succeeds. */
export const endSession =
  (deps: OidcDeps): Methods<OidcServiceService>['endSession'] =>
  async ({ idTokenHint, clientId }, context) => {
    const claims = await deps.tokens.read(idTokenHint)
    if (claims?.type !== 'id') return refused('id_token_hint is not an id token of this provider')
    if (clientId !== '' && clientId !== claims.clientId)
      return refused('client_id is not that of the id token')
    const position = await endSessionOf(deps, claims, context)
    return { clientId: claims.clientId, error: undefined, position }
  }

const refused = (description: string) => ({
  clientId: '',
  error: { error: 'invalid_request', description },
  position: undefined,
})
