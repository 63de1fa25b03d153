import { type Context, Fault, type Methods, type OidcServiceService, type TokenRequest } from '@overlay/rpc'
import { afterBadToken } from '@overlay/service'
import { guessOf } from '../login/guess.js'
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
      return { json: Buffer.from(JSON.stringify(answer)), error: undefined, position: undefined }
    } catch (err) {
      if (!(err instanceof OauthFailure)) throw err
      const { error, description, reason, about } = err
      refuseLogin(deps.noteRefusal, context, {
        method: method ?? 'grant',
        reason,
        identityId: about.identityId,
        apiSessionId: about.apiSessionId,
      })
      if (error === 'invalid_grant') await countBadGrant(deps, context)
      return { json: Buffer.alloc(0), error: { error, description }, position: about.position }
    }
  }

/** Counts it like a bad external token. @throws Fault SERVER_TOO_MANY_REQUESTS from the limit on */
async function countBadGrant(deps: OidcDeps, context: Context): Promise<void> {
  const refusal = new Fault('INVALID_AUTH')
  const fault = await afterBadToken(deps, context, guessOf('token', context), refusal)
  if (fault !== refusal) throw fault
}

const unsupported = (grantType: string): OauthFailure =>
  grantType === ''
    ? new OauthFailure('invalid_request', 'grant_type is required', 'malformed')
    : new OauthFailure('unsupported_grant_type', 'the grant type is not supported', 'malformed')
