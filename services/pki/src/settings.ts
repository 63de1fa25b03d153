import {
  addressSetting,
  ctrlAddressSetting,
  keySecretSetting,
  peersSetting,
  serviceSettings,
  setting,
  tokenSettings,
  type Values,
} from '@overlay/process'
import { namePatternsIn } from './domain/router-names.js'
import type { TokenKeyRules } from './domain/token-key-plan.js'
import { DAY_MS } from './limits.js'
import { providedKeySettings } from './provided-keys/key-sources.js'

export { providedKeySettings }

/** The name of the network in SPIFFE ids. */
export const trustDomainSetting = setting
  .parsed(
    'OVERLAY_TRUST_DOMAIN',
    'Name of the network in SPIFFE ids, such as `net.example`, [fixed with the first keys](operations.md#keys-of-your-own)',
    trustDomainOfText,
  )
  .optional()

/** When the keys of tokens are replaced. */
export const tokenKeySettings = {
  ...tokenSettings,
  tokenKeyDays: setting.number(
    'OVERLAY_TOKEN_KEY_DAYS',
    'Time after which the key that signs tokens is replaced',
    { min: 1, max: 3650, default: 30 },
  ),
  tokenKeysSince: setting
    .parsed(
      'OVERLAY_TOKEN_KEYS_SINCE',
      'For emergencies: a time such as `2026-01-31T12:00:00Z`. Older keys of tokens are removed at the start, and their tokens become invalid',
      timeIn,
    )
    .optional(),
}

const minutes = { min: 5, max: 525_600, default: 180 }

/** The settings of `pki init`. */
export const initSettings = {
  databaseUrl: serviceSettings.databaseUrl,
  databaseTls: serviceSettings.databaseTls,
  logLevel: serviceSettings.logLevel,
  logFormat: serviceSettings.logFormat,
  address: addressSetting,
  ctrlAddress: ctrlAddressSetting,
  keySecret: keySecretSetting,
  trustDomain: trustDomainSetting,
  ...tokenKeySettings,
  ...providedKeySettings,
}

/** All settings of the process. */
export const pkiSettings = {
  ...serviceSettings,
  ...initSettings,
  identityPeers: peersSetting('identity'),
  sessionsPeers: peersSetting('sessions'),
  routerNames: setting.parsed(
    'OVERLAY_ROUTER_NAMES',
    'Hosts that certificates of routers may contain, separated by commas: `*.example.org`, `[name].example.org`, `[id].example.org`, `10.0.0.0/8`; empty: all except those of the product. Exact ones, and those with `[name]` or `[id]`, may be wildcards or belong to several routers',
    namePatternsIn,
    { default: '' },
  ),
  identityMinutes: setting.number(
    'OVERLAY_ENROLLMENT_MINUTES',
    'Default lifetime of an enrollment of an identity',
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

/** How the keys of tokens are replaced. */
export const tokenKeyRulesOf = (settings: Values<typeof tokenKeySettings>): TokenKeyRules => ({
  periodMs: settings.tokenKeyDays * DAY_MS,
  tokenMs: Math.max(settings.accessTokenMinutes, settings.refreshTokenMinutes) * 60_000,
  since: settings.tokenKeysSince,
})

function timeIn(text: string): Date {
  const time = new Date(text)
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$/.test(text) || Number.isNaN(time.getTime()))
    throw new Error('must be a time such as 2026-01-31T12:00:00Z')
  return time
}

function trustDomainOfText(text: string): string {
  if (!/^[a-z0-9._-]{1,255}$/.test(text))
    throw new Error(
      'must be a name of small letters, digits, dots, dashes and underscores, without spiffe://',
    )
  return text
}
