import { describe, expect, test } from 'vitest'
import { readSettings, setting, settingsTable, splitAddress, WrongSettings } from './settings.js'

const settings = {
  listen: setting.address('LISTEN', 'where it listens'),
  replicas: setting.number('REPLICAS', 'how many', { default: 2, min: 1, max: 9 }),
  password: setting.secret('PASSWORD', 'first password', { min: 5 }),
  verbose: setting.flag('VERBOSE', 'say more'),
  format: setting.oneOf('FORMAT', 'of lines', ['json', 'text'], { default: 'json' }),
  database: setting.url('DATABASE', 'rows', ['postgres']),
  name: setting.text('NAME', 'of this one').optional(),
}
const good = { LISTEN: '[::1]:80', PASSWORD: 'abcdef', DATABASE: 'postgres://u:geheim@h/d', VERBOSE: 'true' }

test('values are typed, defaults fill what is absent or empty, and nothing can be changed', () => {
  const read = readSettings(settings, { ...good, FORMAT: '' })
  expect(read).toEqual({
    listen: '[::1]:80',
    replicas: 2,
    password: 'abcdef',
    verbose: true,
    format: 'json',
    database: good.DATABASE,
    name: undefined,
  })
  expect(Object.isFrozen(read)).toBe(true)
})

test('a service is reached at host:port or at a socket, its replicas at a list of them or by name', () => {
  const peers = setting.endpoints('PEERS', 'replicas')
  for (const good of [
    'a:1',
    'unix:/a b/c.sock',
    'unix:/a,unix:/b',
    'a:1, [::1]:2',
    'dns:a:1',
    'dns:a.b:1,c:2',
  ])
    expect(peers.parse(good)).toBe(good)
  for (const bad of ['a', 'unix:a', 'unix:', 'unix:/a,', 'http://a:1', 'dns:a', 'dns:unix:/a', 'dns:'])
    expect(() => peers.parse(bad), bad).toThrow(/must be/)
})

test('a URL of a server names one host, also with a comma in its password, and a list may name several', () => {
  const { database } = settings
  for (const url of ['postgres://u:a,b@h:5432/d', 'postgres://u@h/d?options=a,b'])
    expect(database.parse(url)).toBe(url)
  for (const url of ['postgres://u:p@h1:5432,h2:5432/d?target_session_attrs=read-write', 'postgres://h1,h2'])
    expect(() => database.parse(url)).toThrow('names several hosts: name one address')
  const list = setting.url('NATS', 'servers', ['nats'], { isList: true })
  expect(list.parse('nats://a:4222,nats://b:4222')).toBe('nats://a:4222,nats://b:4222')
})

test('all problems are reported at once, secrets without their values', () => {
  const env = {
    REPLICAS: '12',
    PASSWORD: 'geh1',
    VERBOSE: 'yes',
    FORMAT: 'xml',
    DATABASE: 'mysql://u:geheim@h/d',
  }
  expect(() => readSettings(settings, env)).toThrow(
    new WrongSettings(
      [
        'settings: LISTEN is not set',
        "REPLICAS must be a whole number from 1 to 9, not '12'",
        'PASSWORD must have at least 5 characters',
        "VERBOSE must be true or false, not 'yes'",
        "FORMAT must be one of json, text, not 'xml'",
        'DATABASE must be a URL that begins with postgres://',
      ].join('; '),
    ),
  )
})

describe('an address', () => {
  test.each([
    ['127.0.0.1:80', '127.0.0.1', 80],
    ['localhost:65535', 'localhost', 65535],
    ['[::1]:0', '::1', 0],
  ])('%s is read', (text, host, port) => {
    expect(splitAddress(text)).toEqual({ host, port })
  })
  test.each(['localhost', '::1:80', ':80', 'a b:80', 'host:65536', 'host:', 'http://host:80'])(
    '%s is refused',
    (text) => {
      expect(() => splitAddress(text)).toThrow('must be host:port')
    },
  )
})

test('the table has one row for a variable that several programs read', () => {
  const { listen, replicas, name } = settings
  expect(
    settingsTable({
      gateway: { listen, replicas },
      policy: { listen, name },
      migrate: { listen: listen.optional() },
    }),
  ).toBe(
    [
      '| Variable | Default | Meaning | Read by |',
      '|---|---|---|---|',
      '| `LISTEN` | (must be set) | where it listens | gateway, policy, migrate (optional) |',
      '| `NAME` |  | of this one | policy |',
      '| `REPLICAS` | `2` | how many | gateway |',
      '',
    ].join('\n'),
  )
})
