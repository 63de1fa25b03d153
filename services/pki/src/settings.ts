import {
  ctrlAddressSetting,
  keySecretSetting,
  peersSetting,
  serviceSettings,
  setting,
} from '@overlay/platform/process'
import { namePatternsIn } from './domain/router-names.js'

const minutes = { min: 5, max: 525_600, default: 180 }

/** The settings of `pki init`. */
export const initSettings = {
  databaseUrl: serviceSettings.databaseUrl,
  logLevel: serviceSettings.logLevel,
  logFormat: serviceSettings.logFormat,
  address: setting.address('OVERLAY_ADDRESS', 'Address of the APIs for clients, as host:port', {
    default: 'localhost:1280',
  }),
  ctrlAddress: ctrlAddressSetting,
  keySecret: keySecretSetting,
}

/** All settings of the process. */
export const pkiSettings = {
  ...serviceSettings,
  ...initSettings,
  identityPeers: peersSetting('identity'),
  sessionsPeers: peersSetting('sessions'),
  routerNames: {
    ...setting.text(
      'OVERLAY_ROUTER_NAMES',
      'Host names, addresses and subnets that certificates of routers may contain, separated by commas: `*.example.org`, `[name].example.org`, `[id].example.org`, `10.0.0.0/8`; empty: all except those of the product',
      { default: '' },
    ),
    parse: (text = '') => namePatternsIn(text),
  },
  identityMinutes: setting.number(
    'OVERLAY_ENROLLMENT_MINUTES',
    'Lifetime of an enrollment of an identity that does not set its own',
    minutes,
  ),
  routerMinutes: setting.number(
    'OVERLAY_ROUTER_ENROLLMENT_MINUTES',
    'Lifetime of an enrollment of a router',
    minutes,
  ),
  enrollmentsRunning: setting.number('OVERLAY_ENROLLMENTS_RUNNING', 'Concurrent enrollments of one process', {
    min: 1,
    max: 64,
    default: 4,
  }),
  enrollmentsWaiting: setting.number(
    'OVERLAY_ENROLLMENTS_WAITING',
    'Queue for enrollments; further ones are refused with 429',
    { min: 1, max: 10_000, default: 250 },
  ),
}
