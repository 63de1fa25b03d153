import { X509Certificate } from 'node:crypto'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { forYears, issueCa, issueLeaf, issueServer, openSigner } from '@overlay/x509'
import pino from 'pino'
import sql from 'sql-template-tag'
import { expect, test, vi } from 'vitest'
import { readCsr } from '../src/domain/csr.js'
import { checkKeys } from '../src/keys/check-keys.js'
import { readKeyring } from '../src/keys/keyring.js'
import { activateKey, type KeyRole, listKeys, prepareKey, retireKey } from '../src/keys/operations.js'
import { context, keySecret, type Pki, startPki, tokenKeyRules } from './network.js'
import { newCsr, newKey, openssl } from './openssl.js'

const log = pino({ level: 'silent' })
const DAY_MS = 86_400_000
const force = { force: true }
const rules = { hosts: undefined, tokens: tokenKeyRules }
const operator = { ...context, caller: { ...context.caller, identityName: 'root@host' } }
const depsOf = ({ changeLog }: Pki) => ({ changeLog, keySecret, tokenKeyRules, context: operator })
const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS)

/** What a client has, and what it trusts. */
interface Enrolled {
  readonly chain: string
  readonly bundle: string
}

async function enrolled(pki: Pki, now = new Date()): Promise<Enrolled> {
  const { signer, intermediates, bundle } = await readKeyring(pki.changeLog.db, keySecret, now)
  const leaf = { ...(await readCsr(newCsr())), role: 'client', altNames: [] } as const
  const pem = await issueLeaf(signer, { ...leaf, validity: forYears(1, now) })
  return { chain: pem + intermediates, bundle: bundle.join('') }
}

function verifiesAt(chain: string, bundle: string, purpose: string, now: Date): string {
  const when = ['-attime', String(Math.floor(now.getTime() / 1000))]
  const files = { chain, bundle }
  return openssl(
    ['verify', ...when, '-purpose', purpose, '-CAfile', 'bundle', '-untrusted', 'chain', 'chain'],
    files,
  ).trim()
}

/** Old and new clients verify the server and each other, and the server verifies both. */
async function expectTrust(pki: Pki, clients: readonly Enrolled[], now = new Date()): Promise<void> {
  const { server, bundle } = await readKeyring(pki.changeLog.db, keySecret, now)
  for (const { chain, bundle: theirs } of clients) {
    expect(verifiesAt(server.pem + server.chain, theirs, 'sslserver', now)).toBe('chain: OK')
    expect(verifiesAt(chain, bundle.join(''), 'sslclient', now)).toBe('chain: OK')
    for (const other of clients) expect(verifiesAt(other.chain, theirs, 'sslclient', now)).toBe('chain: OK')
  }
}

const idsOf = async (pki: Pki, role: KeyRole, state: string): Promise<readonly string[]> =>
  (await listKeys(depsOf(pki))).filter((key) => key.role === role && key.state === state).map(({ id }) => id)

test('authorities change automatically for years, and all clients verify everything that is valid', async () => {
  await using pki = await startPki()
  const options = { changeLog: pki.changeLog, keySecret, rules: { ...rules, tokens: undefined }, log }
  const active = new Set<string>()
  let clients: readonly { readonly client: Enrolled; readonly until: Date }[] = []
  for (let day = 0; day < 14 * 365; day += 180) {
    const published = inDays(day + 1)
    for (const now of [inDays(day), published]) await checkKeys(options, context, now)
    for (const role of ['root', 'signing'] as const)
      for (const id of await idsOf(pki, role, 'active')) active.add(id)
    const young = { client: await enrolled(pki, published), until: inDays(day + 365) }
    clients = [...clients.filter(({ until }) => until > published), young]
    const oldest = clients[0]?.client ?? young.client
    await expectTrust(pki, [oldest, young.client], published)
  }
  expect(active.size).toBeGreaterThanOrEqual(6) // of each role at least three
}, 120_000)

test('a root changes together with its signing authority, and clients that know only one of the roots verify both', async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  const [old] = [await enrolled(pki)]
  const before = await listKeys(deps)
  const next = await prepareKey(deps, 'root')
  expect(next).toMatchObject({ role: 'root', state: 'next', source: 'generated', isPublicOnly: false })
  expect(await prepareKey(deps, 'root')).toEqual(next) // repeated
  const between = await enrolled(pki)
  await expectTrust(pki, [old, between])
  await expect(activateKey(deps, 'root')).rejects.toThrow(/not known everywhere yet/)

  const { activated, retired } = await activateKey(deps, 'root', force)
  expect([activated, retired].map((keys) => keys.map(({ role }) => role))).toEqual(
    Array(2).fill(['root', 'signing']),
  )
  const young = await enrolled(pki)
  await expectTrust(pki, [old, between, young])
  const rootOf = (id: string | undefined, bundle: string) =>
    bundle
      .match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n/g)
      ?.find((pem) => new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase() === id) ?? ''
  const oldRoot = rootOf(before.find(({ role }) => role === 'root')?.fingerprint, young.bundle)
  const newRoot = rootOf(next.fingerprint, young.bundle)
  const { server } = await readKeyring(pki.changeLog.db, keySecret, new Date())
  for (const trusted of [oldRoot, newRoot, oldRoot + newRoot]) {
    expect(verifiesAt(server.pem + server.chain, trusted, 'sslserver', new Date())).toBe('chain: OK')
    expect(verifiesAt(young.chain, trusted, 'sslclient', new Date())).toBe('chain: OK')
  }
  expect(server.keyId).not.toBe(before.find(({ role }) => role === 'server')?.fingerprint) // of the new authority
  expect(await idsOf(pki, 'server', 'active')).toEqual(
    before.filter(({ role }) => role === 'server').map(({ id }) => id),
  )
})

test('the private key of a root is forgotten when the root retires', async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  await prepareKey(deps, 'root')
  const { retired } = await activateKey(deps, 'root', force)
  expect(retired.find(({ role }) => role === 'root')).toMatchObject({ isPublicOnly: true })
  const { rows } = await pki.changeLog.db.query(
    sql`select state, private_key is null as "isForgotten" from key where role = 'root' order by state`,
  )
  expect(rows).toEqual([
    { state: 'active', isForgotten: false },
    { state: 'retired', isForgotten: true },
  ])
})

test('a retired authority is not removed while its certificates are valid, unless forced', async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  await prepareKey(deps, 'signing')
  const { retired } = await activateKey(deps, 'signing', force)
  const [former] = retired
  expect(former?.outstanding).toMatchObject({ what: 'certificates' })
  await expect(retireKey(deps, former?.id ?? '')).rejects.toThrow(
    /certificates that depend on the signing key/,
  )
  expect((await retireKey(deps, former?.id ?? '', force)).removed).toHaveLength(1)
  const [active] = await idsOf(pki, 'signing', 'active')
  await expect(retireKey(deps, active ?? '', force)).rejects.toThrow(/is in use/)
})

test('a certificate of a former authority is extended', async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  const { chain } = await enrolled(pki)
  const certPem = chain.slice(0, chain.indexOf('-----BEGIN', 1))
  await prepareKey(deps, 'root')
  await activateKey(deps, 'root', force)
  await vi.waitFor(async () => {
    const extended = await pki.pki.extendCertificate({ certPem, csrPem: newCsr() }, context)
    const { intermediates } = await readKeyring(pki.changeLog.db, keySecret, new Date())
    expect(extended.chainPem.endsWith(intermediates)).toBe(true)
  }, 10_000)
})

test('another server key counts the enrollment tokens that it makes unverifiable', async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  await pki.wish({})
  await pki.wish({})
  const views = await listKeys(deps)
  expect(views.find(({ role }) => role === 'server')?.outstanding).toMatchObject({
    what: 'enrollments',
    count: 2,
  })
  await prepareKey(deps, 'server')
  expect(await activateKey(deps, 'server', force)).toMatchObject({ unverifiableTokens: 2 })
})

test('replicas that check at the same time take each step once', async () => {
  await using pki = await startPki()
  await using replica = await openChangeLog(pki.changeLog.db, noBus, log)
  const due = inDays(7 * 365)
  const logs = [pki.changeLog, replica, pki.changeLog, replica]
  await Promise.all(logs.map((changeLog) => checkKeys({ changeLog, keySecret, rules, log }, context, due)))
  expect(
    [await idsOf(pki, 'root', 'next'), await idsOf(pki, 'signing', 'next')].map((ids) => ids.length),
  ).toEqual([1, 1])
  const deps = depsOf(pki)
  const results = await Promise.allSettled([
    activateKey(deps, 'root', force),
    activateKey({ ...deps, changeLog: replica }, 'root', force),
  ])
  expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
})

test('the audit names the author of each step, and no private key', async () => {
  await using pki = await startPki()
  await prepareKey(depsOf(pki), 'signing')
  await activateKey(depsOf(pki), 'signing', force)
  const { rows } = await pki.changeLog.db.query<{ readonly text: string }>(
    sql`select row_to_json(audit)::text as text from audit where identity_name = 'root@host'`,
  )
  expect(rows.length).toBeGreaterThanOrEqual(3)
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY')
})

test("the operator's authorities and server certificate take over, with a root whose key is elsewhere", async () => {
  await using pki = await startPki()
  const deps = depsOf(pki)
  const old = await enrolled(pki)
  const now = new Date()
  const root = await issueCa({
    privateKey: newKey(),
    commonName: 'company root',
    trustDomain: 'company',
    now,
  })
  const request = { privateKey: newKey('P-384'), commonName: 'company issuing', trustDomain: 'company', now }
  const signing = await issueCa({ ...request, signer: openSigner(root) })
  const provided = { privateKey: signing.privateKey, certificate: signing.pem, chain: [root.pem] }
  expect(await prepareKey(deps, 'signing', provided)).toMatchObject({ state: 'next', source: 'provided' })
  await prepareKey(deps, 'signing', provided) // repeated
  const { activated } = await activateKey(deps, 'signing', force)
  expect(activated.map(({ role, isPublicOnly }) => [role, isPublicOnly])).toEqual([
    ['root', true],
    ['signing', false],
  ])
  await expectTrust(pki, [old, await enrolled(pki)])

  const own = await issueServer(openSigner(signing), {
    privateKey: newKey('RSA-2048'),
    hosts: ['api.example'],
    now,
  })
  await prepareKey(deps, 'server', {
    privateKey: own.privateKey,
    certificate: own.pem,
    chain: [signing.pem, root.pem],
  })
  await activateKey(deps, 'server', force)
  await expectTrust(pki, [old, await enrolled(pki)])
  await checkKeys({ changeLog: pki.changeLog, keySecret, rules, log }, context, inDays(8 * 365))
  expect(await idsOf(pki, 'signing', 'active')).toEqual(
    activated.filter(({ role }) => role === 'signing').map(({ id }) => id),
  )
}, 60_000)

test('the operations need the secret that encrypts the keys', async () => {
  await using pki = await startPki()
  await expect(
    prepareKey({ ...depsOf(pki), keySecret: 'another secret of some thirty characters' }, 'signing'),
  ).rejects.toThrow(/the key secret is not the one/)
})
