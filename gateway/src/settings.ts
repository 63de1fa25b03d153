import { peersSetting, processSettings, setting } from '@overlay/platform'

/** What the gateway reads from its environment. */
export const gatewaySettings = {
  ...processSettings,
  address: setting.address('OVERLAY_ADDRESS', 'host:port under which clients reach the APIs'),
  listen: setting.address('OVERLAY_LISTEN', 'Where the gateway listens for clients'),
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
  sessionsPeers: peersSetting('sessions'),
}

/** Generous for the programs that use the APIs, small enough that nobody can hold a gateway by being slow. */
export const limits = {
  headersMs: 10_000,
  requestMs: 10_000,
  bodyMs: 5_000,
  idleMs: 60_000,
  drainMs: 10_000,
  headerBytes: 32 << 10,
  bodyBytes: 1 << 20,
}
