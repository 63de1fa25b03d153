import type { Context, Methods, OidcServiceService, TokenRequest } from '@overlay/rpc'
import { refuseLogin } from '../login/refuse-login.js'
import { OauthFailure } from '../oidc/oauth-failure.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { redeemCode } from '../oidc/redeem-code.js'
import { exchange, refresh } from '../oidc/renew.js'

type Grant = (deps: OidcDeps, request: TokenRequest, context: Context) => Promise<object>

/** By grant type: the name of the grant in metrics, and its work. */
const grants = new Map<string, readonly [method: string, grant: Grant]>([
  ['authorization_code', ['code', redeemCode]],
  ['refresh_token', ['refresh', refresh]],
  ['urn:ietf:params:oauth:grant-type:token-exchange', ['exchange', exchange]],
])

export const getTokens =
  (deps: OidcDeps): Methods<OidcServiceService>['getTokens'] =>
  async (request, context) => {
    const [method, grant] = grants.get(request.grantType) ?? []
    try {
      if (!grant) throw unsupported(request.grantType)
      const answer = await grant(deps, request, context)
      return { json: Buffer.from(JSON.stringify(answer)), error: undefined }
    } catch (err) {
      if (!(err instanceof OauthFailure)) throw err
      const { error, description, reason, about } = err
      refuseLogin(deps.noteRefusal, context, {
        method: method ?? 'grant',
        reason,
        identityId: about.identityId,
        apiSessionId: about.apiSessionId,
      })
      return { json: Buffer.alloc(0), error: { error, description } }
    }
  }

const unsupported = (grantType: string): OauthFailure =>
  grantType === ''
    ? new OauthFailure('invalid_request', 'grant_type is required', 'malformed')
    : new OauthFailure('unsupported_grant_type', 'the grant type is not supported', 'malformed')
