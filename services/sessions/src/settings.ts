import { connectionSettings, peersSetting, serviceSettings, setting } from '@overlay/process'

/** Everything that this process reads from its environment. */
export const sessionsSettings = {
  ...serviceSettings,
  ...connectionSettings,
  ctrlListen: setting.optional(
    setting.address(
      'OVERLAY_CTRL_LISTEN',
      'Address at which this replica listens for routers; if not set, it takes no connections of routers. The launcher takes the port of `OVERLAY_CTRL_ADDRESS`, as with `OVERLAY_LISTEN`',
    ),
  ),
  ctrlId: setting.text(
    'OVERLAY_CTRL_ID',
    'Id by which routers know this replica. Each replica has its own, which it keeps over restarts',
    { default: 'sessions' },
  ),
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
}
