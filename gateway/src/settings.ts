import { peersSetting, processSettings, setting } from '@overlay/platform/process'

/** The settings that the gateway reads from its environment. */
export const gatewaySettings = {
  ...processSettings,
  address: setting.address('OVERLAY_ADDRESS', 'Address of the APIs for clients, as host:port'),
  listen: setting.address('OVERLAY_LISTEN', 'Address at which the gateway listens'),
  maxConnections: setting.number(
    'OVERLAY_MAX_CONNECTIONS',
    'Maximum of open connections of clients to one gateway. The limit of open files of the process lowers it',
    { min: 1, default: 20_000 },
  ),
  maxConnectionsPerSource: setting.number(
    'OVERLAY_MAX_CONNECTIONS_PER_SOURCE',
    'The same for one IPv4 address or IPv6 /64 network. Many endpoints may share an address',
    { min: 1, default: 5000 },
  ),
  proxyProtocolFrom: setting.optional(
    setting.networks(
      'OVERLAY_PROXY_PROTOCOL_FROM',
      'Balancers that send the PROXY protocol (version 1 or 2): addresses and networks such as `10.0.0.0/8`, separated by commas. List only balancers that always send the header; through others, clients can claim any address',
    ),
  ),
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
  sessionsPeers: peersSetting('sessions'),
}

/** Generous for clients, small enough that slow ones cannot block a gateway. */
export const limits = {
  headersMs: 10_000,
  requestMs: 10_000,
  bodyMs: 5_000,
  idleMs: 60_000,
  drainMs: 10_000,
  headerBytes: 32 << 10,
  bodyBytes: 1 << 20,
  /** Without a session: logins with the data of the SDK, and two requests for certificates. */
  openBodyBytes: 64 << 10,
}
