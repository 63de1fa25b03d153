import { readFileSync } from 'node:fs'
import { createSecureContext, rootCertificates } from 'node:tls'
import {
  addressSetting,
  keySecretSetting,
  peersSetting,
  serviceSettings,
  setting,
  tokenSettings,
  type Values,
} from '@overlay/process'
import type { HashSettings } from './credentials/hashing.js'
import type { Lifetimes } from './domain/lifetimes.js'
import type { TokenLifetimes } from './domain/oidc-claims.js'
import type { TokenSettings } from './external-tokens/external-tokens.js'

/** The settings of `identity-init`. */
export const initSettings = {
  databaseUrl: serviceSettings.databaseUrl,
  databaseTls: serviceSettings.databaseTls,
  logLevel: serviceSettings.logLevel,
  logFormat: serviceSettings.logFormat,
  username: setting.text('OVERLAY_ADMIN_USERNAME', 'User name of the first administrator', {
    default: 'admin',
  }),
  password: setting
    .secret('OVERLAY_ADMIN_PASSWORD', 'Its password; generated and printed once if not set', {
      min: 5,
    })
    .optional(),
}

/** Everything that this process reads from its environment. */
export const identitySettings = {
  ...serviceSettings,
  pkiPeers: peersSetting('pki'),
  policyPeers: peersSetting('policy'),
  sessionsPeers: peersSetting('sessions'),
  address: addressSetting,
  ...tokenSettings,
  keySecret: keySecretSetting,
  totpIssuer: setting.text('OVERLAY_TOTP_ISSUER', 'Name of this network in authenticator apps', {
    default: 'openziti.io',
  }),
  sessionMinutes: setting.number(
    'OVERLAY_SESSION_TIMEOUT_MINUTES',
    'Idle time after which an API session ends',
    { min: 1, max: 525_600, default: 30 },
  ),
  sessionLifetimeMinutes: setting.number(
    'OVERLAY_SESSION_LIFETIME_MINUTES',
    'Age at which an API session ends regardless of its use; 0: no limit',
    { max: 525_600, default: 0 },
  ),
  snapshotMinutes: setting.number('OVERLAY_SNAPSHOT_MINUTES', 'Maximum duration of a database snapshot', {
    min: 1,
    max: 1440,
    default: 15,
  }),
  snapshotMaxMib: setting.number('OVERLAY_SNAPSHOT_MAX_MIB', 'Maximum size of a database snapshot', {
    min: 1,
    max: 1 << 24,
    default: 10_240,
  }),
  hashMemoryKib: setting.number('OVERLAY_PASSWORD_MEMORY_KIB', 'Memory of one password hash (argon2id)', {
    min: 3072,
    max: 4_194_304,
    default: 19_456,
  }),
  hashPasses: setting.number('OVERLAY_PASSWORD_PASSES', 'Passes of one password hash over its memory', {
    min: 1,
    max: 100,
    default: 2,
  }),
  hashLanes: setting.number('OVERLAY_PASSWORD_LANES', 'Threads of one password hash', {
    min: 1,
    max: 16,
    default: 1,
  }),
  hashesRunning: setting.number('OVERLAY_PASSWORD_RUNNING', 'Concurrent password hashes of one process', {
    min: 1,
    max: 64,
    default: 2,
  }),
  hashesWaiting: setting.number(
    'OVERLAY_PASSWORD_WAITING',
    'Queue for password hashes; further logins are refused with 429',
    { min: 1, max: 10_000, default: 250 },
  ),
  tokenSkewSeconds: setting.number(
    'OVERLAY_TOKEN_CLOCK_SKEW_SECONDS',
    'How far the clocks of external JWT signers may differ',
    { max: 300, default: 5 },
  ),
  tokensWithoutExpiry: setting.flag(
    'OVERLAY_TOKENS_WITHOUT_EXPIRY',
    'Accept external tokens without `exp`. They never expire',
  ),
  jwksHttp: setting.flag(
    'OVERLAY_JWKS_HTTP',
    'Fetch these keys from http addresses, too. An attacker who changes that traffic can log in as any identity',
  ),
  jwksNetworks: setting
    .networks(
      'OVERLAY_JWKS_NETWORKS',
      'Private networks (`10.1.0.0/16`, `127.0.0.1`) from which these keys may be fetched, besides public addresses',
    )
    .optional(),
  jwksAuthorities: setting
    .text(
      'OVERLAY_JWKS_CA',
      'PEM file with authorities to trust for keys of external JWT signers, besides public ones',
    )
    .optional(),
}

export type IdentitySettings = Values<typeof identitySettings>

export const lifetimesOf = ({ sessionMinutes, sessionLifetimeMinutes }: IdentitySettings): Lifetimes => ({
  timeoutSeconds: sessionMinutes * 60,
  lifetimeSeconds: sessionLifetimeMinutes * 60,
})

export const tokenLifetimesOf = ({
  accessTokenMinutes,
  refreshTokenMinutes,
}: IdentitySettings): TokenLifetimes => ({
  accessSeconds: accessTokenMinutes * 60,
  refreshSeconds: refreshTokenMinutes * 60,
})

/** Throws if the file of authorities cannot be read. */
export const tokenSettingsOf = (settings: IdentitySettings): TokenSettings => ({
  skewSeconds: settings.tokenSkewSeconds,
  isExpiryRequired: !settings.tokensWithoutExpiry,
  isHttpAllowed: settings.jwksHttp,
  networks: settings.jwksNetworks,
  authorities:
    settings.jwksAuthorities === undefined
      ? undefined
      : [...rootCertificates, authoritiesIn(settings.jwksAuthorities)],
})

function authoritiesIn(file: string): string {
  try {
    const pem = readFileSync(file, 'utf8')
    createSecureContext({ ca: pem })
    return pem
  } catch (cause) {
    throw new Error(`settings: OVERLAY_JWKS_CA: ${(cause as Error).message}`, { cause })
  }
}

export const hashSettingsOf = (settings: IdentitySettings): HashSettings => ({
  memoryKib: settings.hashMemoryKib,
  passes: settings.hashPasses,
  lanes: settings.hashLanes,
  running: settings.hashesRunning,
  waiting: settings.hashesWaiting,
})
