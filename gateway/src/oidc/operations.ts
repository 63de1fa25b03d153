import type { Access, Endpoint, Handler } from '../http/exchange.js'

export type Handlers = Readonly<Record<string, Handler | Endpoint>>

const paths = [
  'GET /.well-known/openid-configuration',
  'GET /oidc/.well-known/openid-configuration',
  'GET /oidc/keys',
  'GET /oidc/authorize',
  'POST /oidc/authorize',
  'GET /oidc/authorize/callback',
  'GET /oidc/login/username',
  'POST /oidc/login/username',
  'GET /oidc/login/password',
  'POST /oidc/login/password',
  'GET /oidc/login/cert',
  'POST /oidc/login/cert',
  'GET /oidc/login/ext-jwt',
  'POST /oidc/login/ext-jwt',
  'GET /oidc/login/auth-queries',
  'POST /oidc/login/totp',
  'POST /oidc/login/totp/enroll',
  'POST /oidc/login/totp/enroll/verify',
  'POST /oidc/oauth/token',
  'POST /oidc/oauth/introspect',
  'GET /oidc/userinfo',
  'POST /oidc/userinfo',
  'POST /oidc/revoke',
  'GET /oidc/end_session',
  'POST /oidc/end_session',
  'GET /oidc/logged-out',
] as const

/** The operations of the provider. None needs an API session: each checks what it receives. */
export const operations: Readonly<Record<string, Access>> = Object.fromEntries(
  paths.map((path) => [path, 'none']),
)
