import { expect, test } from 'vitest'
import { environmentWarnings, readLauncherSettings } from './settings.js'

test.each([
  ['OVERLAY_ADRESS', 'OVERLAY_ADDRESS'],
  ['OVERLAY_ADDRSES', 'OVERLAY_ADDRESS'],
  ['OVERLAY_ADMIN_PASS', 'OVERLAY_ADMIN_PASSWORD'],
  ['OVERLAY_ADMIN_PASSWORD_FILE', 'OVERLAY_ADMIN_PASSWORD'],
  ['OVERLAY_PASSWORD', 'OVERLAY_ADMIN_PASSWORD'],
  ['OVERLAY_DATABASE_URL', 'DATABASE_URL'],
  ['OVERLAY_NATS_URL', 'NATS_URL'],
  ['OVERLAY_SNAPSHOT', 'OVERLAY_SNAPSHOTS'],
  ['OVERLAY_MAX_CONNECTION_PER_SOURCE', 'OVERLAY_MAX_CONNECTIONS_PER_SOURCE'],
  ['OVERLAY_SESSION_TIMEOUT', 'OVERLAY_SESSION_TIMEOUT_MINUTES'],
  ['OVERLAY_LOGLEVEL', 'OVERLAY_LOG_LEVEL'],
  ['OVERLAY_GID', 'OVERLAY_UID'],
])('%s is refused: did you mean %s?', (name, near) => {
  const problem = `${name} is not a setting: did you mean ${near}?`
  expect(() => readLauncherSettings({ [name]: 'geheim' })).toThrow(problem)
  expect(() => readLauncherSettings({ [name]: 'geheim' })).not.toThrow('geheim')
})

test.each([
  'OVERLAY_PORT',
  'OVERLAY_GATEWAY_SERVICE_HOST',
  'OVERLAY_IDENTITY_PORT_443_TCP',
  'OVERLAY_VERSION',
  'OVERLAY_THEME',
  'OVERLAYFS_OPTIONS',
])('%s may belong to another program', (name) => {
  expect(() => readLauncherSettings({ [name]: 'x' })).not.toThrow()
})

test('unknown variables are named in a warning, without their values', () => {
  expect(
    environmentWarnings({ OVERLAY_THEME: 'dark', OVERLAY_VERSION: '1', OVERLAYFS: 'x', HOME: '/' }),
  ).toEqual(['no settings of this product, ignored: OVERLAY_THEME, OVERLAY_VERSION (docs/settings.md)'])
})

test('settings that the launcher chooses itself are named in a warning', () => {
  expect(environmentWarnings({ OVERLAY_KEY_SECRET: 'geheim', OVERLAY_PKI_PEERS: 'a:1' })).toEqual([
    'ignored, because the launcher chooses their values: OVERLAY_KEY_SECRET, OVERLAY_PKI_PEERS',
  ])
})

test('settings of the launcher and of its processes are known, as are empty ones', () => {
  const env = { OVERLAY_ADDRESS: 'a:1', OVERLAY_AUDIT_DAYS: '7', OVERLAY_RUN_AS: '1:1', OVERLAY_X: '' }
  expect(environmentWarnings(env)).toEqual([])
  expect(() => readLauncherSettings(env)).not.toThrow()
})

test('wrong values of the processes are reported with all other problems', () => {
  const env = {
    OVERLAY_ADDRESS: 'nowhere',
    OVERLAY_SESSION_TIMEOUT_MINUTES: 'soon',
    OVERLAY_PROXY_PROTOCOL_FROM: 'balancer',
    OVERLAY_ROUTER_NAMES: '*.*',
    OVERLAY_LOGLEVEL: 'warn',
    DATABASE_URL: 'postgres://u:p/w@host/db',
    NATS_URL: 'nats://a:4222,nats://b:port',
  }
  for (const name of Object.keys(env)) expect(() => readLauncherSettings(env)).toThrow(name)
  expect(() => readLauncherSettings(env)).toThrow(
    "special characters of the password are percent-encoded ('@' is %40",
  )
})

test('several URLs of a bus are valid', () => {
  const urls = 'nats://u:p@a:4222,nats://b:4222'
  expect(readLauncherSettings({ NATS_URL: urls }).natsUrl).toBe(urls)
})
