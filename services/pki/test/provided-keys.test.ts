import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testDatabase } from '@overlay/launcher/testing'
import { metrics } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { openDatabase } from '@overlay/store/postgres'
import pino from 'pino'
import { beforeAll, expect, test } from 'vitest'
import { initPki } from '../src/init.js'
import { readKeyring } from '../src/keys/keyring.js'
import {
  activateKey,
  type KeyRole,
  type KeyView,
  listKeys,
  prepareKey,
  retireKey,
} from '../src/keys/operations.js'
import { type ProvidedKeyPaths, providedSources } from '../src/provided-keys/key-sources.js'
import { watchKey } from '../src/provided-keys/watch-provided-keys.js'
import { newKey, verifies } from './openssl.js'
import { authorityExtensions, type Certified, certified, serverExtensions } from './own-authority.js'

const keySecret = 'a key secret of at least 32 characters'
const tokenKeyRules = { periodMs: 30 * 86_400_000, tokenMs: 86_400_000, since: undefined }
const rsa = newKey('RSA-2048')

let root: Certified
let signing: Certified
let server: Certified
beforeAll(() => {
  root = certified('root', { key: rsa })
  signing = certified('signing', { issuer: root, key: newKey('P-384') })
  server = certified('server', { issuer: signing, key: rsa, extensions: serverExtensions('api.example') })
})

async function network() {
  const directory = mkdtempSync(join(tmpdir(), 'provided-'))
  const database = await testDatabase('pki')
  const databaseUrl = database.urlOf('pki')
  const db = openDatabase(databaseUrl, 'pki')
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
  const changeLog = await openChangeLog(db, noBus, log)
  const context = ownContext(new AbortController().signal)
  const deps = { changeLog, keySecret, tokenKeyRules, context, hosts: ['api.example'], log }
  const write = (name: string, ...pems: readonly string[]): string => {
    writeFileSync(join(directory, name), pems.join(''), { mode: 0o600 })
    return join(directory, name)
  }
  return {
    deps,
    lines,
    write,
    init: (paths: ProvidedKeyPaths = {}, trustDomain?: string) =>
      initPki({
        databaseUrl,
        keySecret,
        address: 'api.example:1280',
        ctrlAddress: 'api.example:6262',
        provided: { paths, tokenKeyRules },
        trustDomain,
        log,
      }),
    keyring: () => readKeyring(db, keySecret, new Date()),
    keys: () => listKeys(deps),
    /** Looks at the files as after some seconds. */
    watch(paths: ProvidedKeyPaths) {
      const watches = providedSources(paths).map(watchKey)
      return async (seconds = 0): Promise<void> => {
        const now = () => new Date(Date.now() + seconds * 1000)
        for (const watch of watches) await watch({ ...deps, now })
      }
    },
    async [Symbol.asyncDispose]() {
      rmSync(directory, { recursive: true })
      await changeLog[Symbol.asyncDispose]()
      await db[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

const states = (keys: readonly KeyView[], role: KeyRole): readonly string[] =>
  keys.filter((key) => key.role === role).map(({ state, source }) => `${state} ${source}`)

test('the first start uses the keys of the operator, and generates no others in their place', async () => {
  await using net = await network()
  const paths = {
    signingKey: net.write('signing', signing.key, signing.cert, root.cert),
    serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert),
    tokenKey: net.write('token', rsa),
  }
  const { caPem } = await net.init(paths)
  const keys = await net.keys()
  for (const role of ['root', 'signing', 'server', 'token'] as const)
    expect([role, states(keys, role)]).toEqual([role, ['active provided']])
  expect(keys.filter(({ isPublicOnly }) => isPublicOnly).map(({ role }) => role)).toEqual(['root'])
  expect(keys.map(({ role, kind }) => `${role} ${kind}`)).toEqual([
    'root RSA 2048',
    'signing P-384',
    'server RSA 2048',
    'token RSA 2048',
    'session P-256',
    'session P-256',
  ])
  expect(caPem).toContain(root.cert)
  const { server: served, intermediates } = await net.keyring()
  expect(served.pem).toBe(server.cert)
  expect(verifies(served.pem + intermediates, root.cert, 'sslserver')).toBe('chain: OK')
})

test('a server certificate that is generated verifies against the root of the operator', async () => {
  await using net = await network()
  await net.init({ signingKey: net.write('signing', signing.key, signing.cert, root.cert) })
  const { server: served, intermediates } = await net.keyring()
  expect(verifies(served.pem + intermediates, root.cert, 'sslserver')).toBe('chain: OK')
  expect(new X509Certificate(served.pem).checkHost('api.example')).toBe('api.example')
})

const digestOf = ({ cert }: Certified): string =>
  new X509Certificate(cert).fingerprint.replaceAll(':', '').toLowerCase()

test('without a SPIFFE id, a new network is named after the digest of the root', async () => {
  await using net = await network()
  await net.init({
    signingKey: net.write('signing', signing.key, signing.cert, root.cert),
    serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert),
  })
  expect((await net.keyring()).trustDomain).toBe(digestOf(root))
})

const named = (uri: string, extensions: readonly string[]): readonly string[] => [
  ...extensions.filter((one) => !one.startsWith('subjectAltName')),
  `subjectAltName=URI:${uri}${extensions === authorityExtensions ? '' : ',DNS:api.example'}`,
]

test('a new network is named after the first SPIFFE id between the server and the root', async () => {
  await using net = await network()
  const top = certified('top', { extensions: named('spiffe://of.root', authorityExtensions) })
  const between = certified('between', {
    issuer: top,
    extensions: named('spiffe://of.signing/x', authorityExtensions),
  })
  const leaf = certified('leaf', { issuer: between, key: rsa, extensions: serverExtensions('api.example') })
  await net.init({
    signingKey: net.write('signing', between.key, between.cert, top.cert),
    serverKey: net.write('server', leaf.key, top.cert, leaf.cert, between.cert),
  })
  expect((await net.keyring()).trustDomain).toBe('of.signing')
})

test('a SPIFFE id of the server alone names a network whose other keys are generated', async () => {
  await using net = await network()
  const leaf = certified('leaf', {
    issuer: signing,
    key: rsa,
    extensions: named('spiffe://of.server/controller/c1', serverExtensions('api.example')),
  })
  await net.init({ serverKey: net.write('server', leaf.key, leaf.cert, signing.cert, root.cert) })
  const { trustDomain, bundle } = await net.keyring()
  expect(trustDomain).toBe('of.server')
  expect(bundle.map((pem) => new X509Certificate(pem).subjectAltName)).toContain('URI:spiffe://of.server')
})

test('the setting names a network of provided keys, unless they name another one', async () => {
  await using net = await network()
  const top = certified('top', { extensions: named('spiffe://of.root', authorityExtensions) })
  const below = certified('below', { issuer: top })
  const unfit = net.init({ signingKey: net.write('other', below.key, below.cert, top.cert) }, 'net.example')
  await expect(unfit).rejects.toThrow(/OVERLAY_TRUST_DOMAIN is net.example, but .* name of.root/)
  expect(await net.keys()).toEqual([])
  await net.init({ signingKey: net.write('signing', signing.key, signing.cert, root.cert) }, 'net.example')
  expect((await net.keyring()).trustDomain).toBe('net.example')
})

test('a network keeps its name when other keys are provided', async () => {
  await using net = await network()
  await net.init()
  const { trustDomain } = await net.keyring()
  const paths = { signingKey: net.write('signing', signing.key, signing.cert, root.cert) }
  await net.init(paths)
  const check = net.watch(paths)
  await check()
  await check(61)
  expect(states(await net.keys(), 'root')).toContain('active provided')
  expect((await net.keyring()).trustDomain).toBe(trustDomain)
  await expect(net.init(paths, digestOf(root))).rejects.toThrow(/cannot change/)
})

test('a bad file is refused before anything is written', async () => {
  await using net = await network()
  const paths = {
    signingKey: net.write('signing', signing.key, signing.cert, root.cert),
    serverKey: net.write('server', newKey('RSA-2048'), server.cert, signing.cert, root.cert),
  }
  await expect(net.init(paths)).rejects.toThrow(
    /^OVERLAY_SERVER_KEY \S+server: the key does not fit the certificate of 'O=example, CN=server': provide the certificate/,
  )
  expect(await net.keys()).toEqual([])
})

test('a later start publishes another key, and it becomes active automatically a minute later', async () => {
  await using net = await network()
  await net.init()
  const paths = {
    signingKey: net.write('signing', signing.key, signing.cert, root.cert),
    serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert),
    tokenKey: net.write('token', rsa),
  }
  await net.init(paths)
  const check = net.watch(paths)
  await check()
  const published = await net.keys()
  for (const role of ['signing', 'server'] as const)
    expect([role, states(published, role)]).toEqual([role, expect.arrayContaining(['next provided'])])
  expect((await net.keyring()).bundle).toContain(signing.cert)
  await check(61)
  const active = await net.keys()
  for (const role of ['root', 'signing', 'server', 'token'] as const)
    expect([role, states(active, role)]).toEqual([role, expect.arrayContaining(['active provided'])])
  expect(net.lines.join('')).toContain('provided key activated')
})

test('another certificate over the same key replaces the former one while the product runs', async () => {
  await using net = await network()
  const paths = { serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert) }
  await net.init(paths)
  const check = net.watch(paths)
  await check()
  const before = (await net.keys()).find(({ role }) => role === 'server')
  const renewed = certified('renewed', {
    issuer: signing,
    key: rsa,
    extensions: serverExtensions('api.example'),
  })
  net.write('server', renewed.key, renewed.cert, signing.cert, root.cert)
  await check(1)
  const after = (await net.keys()).filter(({ role }) => role === 'server')
  expect(after.map(({ id, state }) => [id, state])).toEqual([[before?.id, 'active']])
  expect((await net.keyring()).server.pem).toBe(renewed.cert)
})

test('while the files cannot be used, the last key stays, with one line and a metric', async () => {
  await using net = await network()
  const paths = { serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert) }
  await net.init(paths)
  const check = net.watch(paths)
  const refused = async () =>
    (await metrics.providedKeyRefused.get()).values.find(({ labels }) => labels.role === 'server')?.value
  await check()
  expect(await refused()).toBe(0)
  net.write('server', server.key, signing.cert)
  for (let again = 0; again < 3; again++) await check(again)
  expect(await refused()).toBe(1)
  const refusals = net.lines.filter((line) => line.includes('provided key cannot be used'))
  expect(refusals, refusals.join('')).toHaveLength(1)
  expect(net.lines.join('')).not.toContain('PRIVATE KEY')
  expect((await net.keyring()).server.pem).toBe(server.cert)
  net.write('server', server.key, server.cert, signing.cert, root.cert)
  await check(4)
  expect(await refused()).toBe(0)
})

test('only the key of the files becomes active automatically, no other next key', async () => {
  await using net = await network()
  const paths = { serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert) }
  await net.init(paths)
  await prepareKey(net.deps, 'server')
  const check = net.watch(paths)
  await check()
  await check(61)
  expect(states(await net.keys(), 'server')).toEqual(['active provided', 'next generated'])
})

test('a key that has been retired is not refused at the start, and stays retired', async () => {
  await using net = await network()
  const paths = { serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert) }
  await net.init(paths)
  await prepareKey(net.deps, 'server')
  await activateKey(net.deps, 'server', { force: true })
  await net.init(paths)
  expect(states(await net.keys(), 'server')).toEqual(['retired provided', 'active generated'])
  expect(net.lines.join('')).toContain('provided key not used')
})

test('a key that the operator withdraws is not published again until its files change', async () => {
  await using net = await network()
  await net.init()
  const paths = { serverKey: net.write('server', server.key, server.cert, signing.cert, root.cert) }
  const check = net.watch(paths)
  await check()
  const next = (await net.keys()).find(({ role, state }) => role === 'server' && state === 'next')
  await retireKey(net.deps, next?.id ?? '')
  await check(61)
  expect(states(await net.keys(), 'server')).toEqual(['active generated'])
})
