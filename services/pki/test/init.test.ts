import { X509Certificate } from 'node:crypto'
import { testDatabase } from '@overlay/launcher/testing'
import { ownContext } from '@overlay/rpc'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { openDatabase } from '@overlay/store/postgres'
import { hostsOf, notAfterOf } from '@overlay/x509'
import pino from 'pino'
import sql from 'sql-template-tag'
import { expect, test } from 'vitest'
import { type InitOptions, initPki } from '../src/init.js'
import { checkKeys } from '../src/keys/check-keys.js'
import { readKeyring } from '../src/keys/keyring.js'
import { verifies } from './openssl.js'

const log = pino({ level: 'silent' })
const keySecret = 'a key secret of at least 32 characters'

async function network() {
  const database = await testDatabase('pki')
  const databaseUrl = database.urlOf('pki')
  const db = openDatabase(databaseUrl, 'pki')
  return {
    db,
    init: (more: Partial<InitOptions> = {}) =>
      initPki({
        databaseUrl,
        keySecret,
        address: 'localhost:1280',
        ctrlAddress: 'localhost:6262',
        log,
        ...more,
      }),
    keyring: () => readKeyring(db, keySecret, new Date()),
    async [Symbol.asyncDispose]() {
      await db[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

test('the first call creates a root, an authority and the certificate of gateways', async () => {
  await using net = await network()
  const { caPem } = await net.init({ address: 'api.example:1280' })
  const { server, intermediates, bundle, trustDomain } = await net.keyring()
  expect(bundle.join('')).toBe(caPem)
  expect(bundle.map((pem) => new X509Certificate(pem).ca)).toEqual([true, true])
  expect(verifies(server.pem + intermediates, bundle[0] ?? '', 'sslserver')).toBe('chain: OK')
  expect(new X509Certificate(server.pem).checkHost('api.example')).toBe('api.example')
  expect(bundle.map((pem) => new X509Certificate(pem).subjectAltName)).toEqual(
    Array(2).fill(`URI:spiffe://${trustDomain}`),
  )
})

test('a new network is named after the setting, and keeps the name', async () => {
  await using net = await network()
  await net.init({ trustDomain: 'net.example' })
  const { bundle, trustDomain } = await net.keyring()
  expect(trustDomain).toBe('net.example')
  expect(bundle.map((pem) => new X509Certificate(pem).subjectAltName)).toEqual(
    Array(2).fill('URI:spiffe://net.example'),
  )
  await expect(net.init({ trustDomain: 'other.example', address: 'api.example:1280' })).rejects.toThrow(
    /OVERLAY_TRUST_DOMAIN is other.example, but the trust domain of this network is net.example/,
  )
  expect((await net.keyring()).server.hosts).not.toContain('api.example')
  await net.init({ trustDomain: 'net.example' })
  await net.init()
  expect((await net.keyring()).trustDomain).toBe('net.example')
})

test('concurrent and later calls find the same keys', async () => {
  await using net = await network()
  const answers = await Promise.all([net.init(), net.init(), net.init()])
  const first = await net.keyring()
  expect(new Set(answers.map(({ caPem }) => caPem)).size).toBe(1)
  expect(await net.init({ address: '[::1]:1280' })).toEqual(answers[0])
  expect((await net.keyring()).server).toEqual(first.server)
})

test('another address gives another certificate over the same key with the older names too', async () => {
  await using net = await network()
  await net.init({ address: 'old.example:1280' })
  const before = await net.keyring()
  await net.init({ address: '192.0.2.1:1280', hostNames: ['new.example'] })
  const after = await net.keyring()
  expect(after.server.privateKey).toBe(before.server.privateKey)
  expect(after.server.keyId).not.toBe(before.server.keyId)
  const certificate = new X509Certificate(after.server.pem)
  expect([certificate.checkHost('old.example'), certificate.checkHost('new.example')]).not.toContain(
    undefined,
  )
  expect(certificate.checkIP('192.0.2.1')).toBe('192.0.2.1')
  const { rows } = await net.db.query(sql`select kind, entity from change order by number desc limit 1`)
  expect(rows).toEqual([{ kind: 'keys', entity: { role: 'server', state: 'active' } }])
})

test('a server certificate is renewed over the same key when a third of its life is left', async () => {
  await using net = await network()
  await net.init()
  const before = await net.keyring()
  await using changeLog = await openChangeLog(net.db, noBus, log)
  const context = ownContext(new AbortController().signal)
  const rules = { hosts: [], tokens: undefined }
  const checkIn = (days: number) =>
    checkKeys({ changeLog, keySecret, rules, log }, context, new Date(Date.now() + days * 86_400_000))
  await checkIn(240)
  expect((await net.keyring()).server.keyId).toBe(before.server.keyId)
  await checkIn(250)
  const after = await net.keyring()
  expect(after.server.privateKey).toBe(before.server.privateKey)
  expect(notAfterOf(after.server.pem).getTime()).toBeGreaterThan(notAfterOf(before.server.pem).getTime())
  expect(hostsOf(after.server.pem)).toEqual(hostsOf(before.server.pem))
})

test('another key secret is refused, and says so', async () => {
  await using net = await network()
  await net.init()
  await expect(net.init({ keySecret: 'another secret of some thirty characters' })).rejects.toThrow(
    /the key secret is not the one/,
  )
})

test('no table has a readable private key', async () => {
  await using net = await network()
  await net.init()
  const { rows } = await net.db.query(sql`
    select row_to_json(key)::text as text from key union all select row_to_json(session_key)::text from session_key
     union all select row_to_json(audit)::text from audit
     union all select row_to_json(change)::text from change`)
  expect(rows.length).toBe(9)
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY')
})
