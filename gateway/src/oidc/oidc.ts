import type { LineLog } from '@overlay/process'
import { issuerOf } from '@overlay/process/tokens'
import type { GatewayCaches } from '../cache/caches.js'
import type { Services } from '../clients/services.js'
import type { MountedApi } from '../http/exchange.js'
import { send, sendPrepared } from '../http/send.js'
import { authorize } from './authorize.js'
import { discovery } from './discovery.js'
import { endSession } from './end-session.js'
import { loginSteps } from './login.js'
import { operations } from './operations.js'
import { oidcProtocol } from './protocol.js'
import { openUnregisteredLog } from './provider.js'
import type { RedirectUris } from './redirect-uris.js'
import { secondFactorSteps } from './second-factor.js'
import { tokens } from './tokens.js'
import { userinfo } from './userinfo.js'

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
