import { peersSetting, serviceSettings } from '@overlay/process'

/** Everything that this process reads from its environment. */
export const policySettings = {
  ...serviceSettings,
  identityPeers: peersSetting('identity'),
  sessionsPeers: peersSetting('sessions'),
}
