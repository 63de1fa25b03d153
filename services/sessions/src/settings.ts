import { connectionSettings, peersSetting, serviceSettings, setting } from '@overlay/process'

/** Everything that this process reads from its environment. */
export const sessionsSettings = {
  ...serviceSettings,
  ...connectionSettings,
  ctrlListen: setting
    .address(
      'OVERLAY_CTRL_LISTEN',
      'Address at which this replica listens for routers; if not set, none. The launcher uses the port of `OVERLAY_CTRL_ADDRESS`, as with `OVERLAY_LISTEN`',
    )
    .optional(),
  ctrlId: setting.text('OVERLAY_CTRL_ID', 'Id by which routers know this replica: unique and permanent', {
    default: 'sessions',
  }),
  identityPeers: peersSetting('identity'),
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
}
