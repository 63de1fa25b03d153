import {
  connectionSettings,
  consoleSetting,
  peersSetting,
  processSettings,
  setting,
} from '@overlay/platform/process'

/** The settings that the gateway reads from its environment. */
export const gatewaySettings = {
  ...processSettings,
  address: setting.address('OVERLAY_ADDRESS', 'Address of the APIs for clients, as host:port'),
  listen: setting.address('OVERLAY_LISTEN', 'Address at which the gateway listens'),
  console: consoleSetting,
  ...connectionSettings,
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
