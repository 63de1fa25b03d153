import type { LineLog } from '@overlay/process'
import { issuerOf, TOKEN_ALGORITHM } from '@overlay/process/tokens'
import type { GatewayCaches } from '../cache/caches.js'
import type { Services } from '../clients/services.js'
import type { MountedApi } from '../http/exchange.js'
import { type PreparedBody, prepareBody, send, sendPrepared } from '../http/send.js'
import { authorize } from './authorize.js'
import { endSession } from './end-session.js'
import { loginSteps } from './login.js'
import { operations } from './operations.js'
import { openUnregisteredLog } from './provider.js'
import type { RedirectUris } from './redirect-uris.js'
import { oidcProtocol } from './responses.js'
import { secondFactorSteps } from './second-factor.js'
import { GRANTS, tokens, userinfo } from './tokens.js'

export interface OidcOptions {
  readonly services: Services
  readonly caches: Pick<GatewayCaches, 'sessions' | 'tokenKeys'>
  /** `host:port` of the APIs. */
  readonly address: string
  readonly redirects: RedirectUris
  readonly logoutRedirects: RedirectUris
  readonly log: LineLog
}

/** The provider of OpenID Connect, at `/oidc`. Its state is identity's, its keys are pki's. */
export function oidcApi({
  services,
  caches,
  address,
  redirects,
  logoutRedirects,
  log,
}: OidcOptions): MountedApi<'oidc'> {
  const issuer = issuerOf(address)
  const { oidc } = services
  const provider = {
    oidc,
    signers: services.entitiesOf('identity'),
    issuer,
    redirects,
    logoutRedirects,
    noteUnregistered: openUnregisteredLog(log),
  }
  const metadata = discovery(issuer)
  return {
    api: 'oidc',
    root: '',
    protocol: oidcProtocol,
    operations,
    handlers: {
      'GET /.well-known/openid-configuration': (c) => sendPrepared(c, metadata),
      'GET /oidc/.well-known/openid-configuration': (c) => sendPrepared(c, metadata),
      'GET /oidc/keys': async (c) => send(c, 200, await caches.tokenKeys.document()),
      ...authorize(provider),
      ...loginSteps(provider),
      ...secondFactorSteps(provider),
      ...tokens(provider),
      ...endSession(provider),
      ...userinfo(caches.sessions),
    },
  }
}

/** The metadata of the provider. Names only what works. */
export function discovery(issuer: string): PreparedBody {
  const clients = ['none', 'client_secret_basic']
  return prepareBody(
    JSON.stringify({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/oauth/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      revocation_endpoint: `${issuer}/revoke`,
      end_session_endpoint: `${issuer}/end_session`,
      jwks_uri: `${issuer}/keys`,
      scopes_supported: ['openid', 'profile', 'offline_access'],
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: GRANTS,
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: [TOKEN_ALGORITHM],
      token_endpoint_auth_methods_supported: clients,
      revocation_endpoint_auth_methods_supported: clients,
      claims_supported: [
        'sub',
        'iss',
        'aud',
        'exp',
        'iat',
        'auth_time',
        'nonce',
        'amr',
        'azp',
        'at_hash',
        'name',
      ],
      code_challenge_methods_supported: ['S256'],
      request_parameter_supported: false,
      request_uri_parameter_supported: false,
      claims_parameter_supported: false,
      // wire: newer SDKs read them
      openziti_endpoints: {
        password: `${issuer}/login/password`,
        cert: `${issuer}/login/cert`,
        ext_jwt: `${issuer}/login/ext-jwt`,
        totp: `${issuer}/login/totp`,
        totp_enroll: `${issuer}/login/totp/enroll`,
        totp_enroll_verify: `${issuer}/login/totp/enroll/verify`,
        auth_queries: `${issuer}/login/auth-queries`,
      },
    }),
  )
}
