import { connectionSettings, consoleSetting, peersSetting, processSettings, setting } from '@overlay/process'
import { localUris, redirectUris } from './oidc/redirect-uris.js'

const uris = (env: string, page: 'callback' | 'logout', about: string) =>
  setting.parsed(env, about, redirectUris, { default: localUris(page) })

/** The settings that the gateway reads from its environment. */
export const gatewaySettings = {
  ...processSettings,
  address: setting.address('OVERLAY_ADDRESS', 'Address of the APIs for clients, as host:port'),
  listen: setting.address('OVERLAY_LISTEN', 'Address at which the gateway listens'),
  console: consoleSetting,
  redirects: uris(
    'OVERLAY_OIDC_REDIRECTS',
    'callback',
    'URIs to which a sign-in by OpenID Connect may return, separated by commas. The port may be `*`',
  ),
  logoutRedirects: uris('OVERLAY_OIDC_LOGOUT_REDIRECTS', 'logout', 'URIs to which a sign-out may return'),
  oidcUnannounced: setting.flag(
    'OVERLAY_OIDC_UNANNOUNCED',
    'Do not offer SDKs and consoles sign-in by OpenID Connect: they use API sessions, unless configured otherwise',
  ),
  ...connectionSettings,
  requestsPerSource: setting.number(
    'OVERLAY_MAX_REQUESTS_PER_SOURCE',
    'Requests in a second of one IPv4 address or IPv6 /64 network to one gateway; 0: limited only while the gateway is saturated',
    { min: 0, default: 0 },
  ),
  requestsPerSession: setting.number(
    'OVERLAY_MAX_REQUESTS_PER_SESSION',
    'Requests in a second of one API session to one gateway; 0: limited only while the gateway is saturated',
    {
      min: 0,
      default: 0,
    },
  ),
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
  sessionsPeers: peersSetting('sessions'),
}
