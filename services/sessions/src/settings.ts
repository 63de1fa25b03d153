import { peersSetting, serviceSettings } from '@overlay/platform/process'

/** Everything that this process reads from its environment. */
export const sessionsSettings = {
  ...serviceSettings,
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
}
