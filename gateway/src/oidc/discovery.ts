import { TOKEN_ALGORITHM } from '@overlay/process/tokens'
import { type PreparedBody, prepareBody } from '../http/send.js'
import { GRANTS } from './tokens.js'

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
