import { execFileSync } from 'node:child_process'
import { createPublicKey, X509Certificate } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KeyKind, newKey, openssl } from '../../test/openssl.js'
import { authorityExtensions, type Certified, certified, serverExtensions } from '../../test/own-authority.js'
import { readProvidedKey } from './read-provided-key.js'

const directory = mkdtempSync(join(tmpdir(), 'own-keys-'))
afterAll(() => rmSync(directory, { recursive: true }))

type Role = Parameters<typeof readProvidedKey>[0]

let count = 0
/** A new directory with these files. Undefined: the file is absent. */
function directoryOf(files: Readonly<Record<string, string | Buffer | undefined>>): string {
  const path = join(directory, String(count++))
  mkdirSync(path)
  for (const [name, content] of Object.entries(files))
    if (content !== undefined) writeFileSync(join(path, name), content, { mode: 0o600 })
  return path
}

const fileOf = (content: string | Buffer): string => join(directoryOf({ file: content }), 'file')

const names = { path: 'OVERLAY_KEY', passphraseFile: 'OVERLAY_KEY_PASSPHRASE_FILE' }
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)

const read = (role: Role, path: string, passphraseFile?: string, now = inDays(1)) =>
  readProvidedKey(role, { path, passphraseFile, names }, { hosts: ['api.example', '192.0.2.1'], now })

/** What the refusal says, with the path of the directory left out. */
async function refusal(role: Role, path: string, passphraseFile?: string, now?: Date) {
  const err: unknown = await read(role, path, passphraseFile, now).catch((err: unknown) => err)
  expect(err).toBeInstanceOf(Error)
  const { message } = err as Error
  expect(message).not.toMatch(/\n|PRIVATE|geheim/)
  return message.replaceAll(join(path, '/'), '').replaceAll(path, 'PATH')
}

const rsa2048 = newKey('RSA-2048') // takes long to generate
const keyOf = (kind: KeyKind): string => (kind === 'RSA-2048' ? rsa2048 : newKey(kind))
let root: Certified
let signing: Certified
let server: Certified
beforeAll(() => {
  root = certified('root')
  signing = certified('signing', { issuer: root, key: newKey('P-384') })
  server = certified('server', {
    issuer: signing,
    key: rsa2048,
    extensions: serverExtensions('api.example', '192.0.2.1'),
  })
})

const signingFiles = () => ({ 'tls.crt': signing.cert, 'tls.key': signing.key, 'ca.crt': root.cert })

describe('forms of a key', () => {
  const expectSigning = async (
    path: string,
    passphraseFile?: string,
    of: Certified = signing,
  ): Promise<void> => {
    const { privateKey, certificate, chain } = await read('signing', path, passphraseFile)
    expect(createPublicKey(privateKey).equals(createPublicKey(of.key))).toBe(true)
    expect(certificate).toBe(of.cert)
    expect(chain).toEqual([root.cert])
  }
  const passphraseFile = () => fileOf('geheim\n')

  test('a directory with certificate, key and root is read', () => expectSigning(directoryOf(signingFiles())))

  test('the certificates of one file may be in any order', async () => {
    for (const parts of [
      [signing.key, root.cert, signing.cert],
      [signing.cert, signing.key, root.cert],
    ])
      await expectSigning(fileOf(`a comment\n${parts.join('')}`))
  })

  test.each(['P-256', 'P-384', 'P-521', 'RSA-2048', 'Ed25519'] as const)(
    'an authority may have a %s key',
    async (kind) => {
      const own = certified('own', { issuer: root, key: keyOf(kind) })
      await expectSigning(fileOf(own.key + own.cert + root.cert), undefined, own)
    },
  )

  test.each<[string, 'P-256' | 'RSA-2048', (key: string) => string]>([
    ['PKCS#1', 'RSA-2048', (key) => openssl(['rsa', '-in', 'key', '-traditional'], { key })],
    ['SEC1 with parameters', 'P-256', (key) => openssl(['ec', '-in', 'key'], { key })],
    ['PKCS#8 with AES-256', 'P-256', (key) => encrypted(key, '-v2', 'aes-256-cbc')],
    ['PKCS#8 with AES-256', 'RSA-2048', (key) => encrypted(key, '-v2', 'aes-256-cbc')],
    ['PKCS#8 with 3DES', 'P-256', (key) => encrypted(key, '-v2', 'des3')],
    ['PKCS#8 with SHA-1 and 3DES', 'RSA-2048', (key) => encrypted(key, '-v1', 'PBE-SHA1-3DES')],
    ['PKCS#8 with scrypt', 'P-256', (key) => encrypted(key, '-scrypt')],
    ['SEC1 with AES-256', 'P-256', (key) => openssl(['ec', '-in', 'key', '-aes256', ...passOut], { key })],
    [
      'PKCS#1 with AES-256',
      'RSA-2048',
      (key) => openssl(['rsa', '-in', 'key', '-traditional', '-aes256', ...passOut], { key }),
    ],
    [
      'PKCS#1 with 3DES',
      'RSA-2048',
      (key) => openssl(['rsa', '-in', 'key', '-traditional', '-des3', ...passOut], { key }),
    ],
  ])('a key in PEM may be %s (%s)', async (_what, kind, convert) => {
    const own = certified('own', { issuer: root, key: keyOf(kind) })
    await expectSigning(fileOf(convert(own.key) + own.cert + root.cert), passphraseFile(), own)
  })

  test.each<[string, readonly string[]]>([
    ['OpenSSL 3', []],
    ['OpenSSL 1', ['-legacy']],
    [
      'cert-manager',
      ['-legacy', '-certpbe', 'PBE-SHA1-RC2-40', '-keypbe', 'PBE-SHA1-3DES', '-macalg', 'sha1'],
    ],
    ['a tool that encrypts no certificates', ['-certpbe', 'NONE']],
    ['a tool that writes no MAC', ['-nomac']],
  ])('a PKCS#12 file of %s is read, with EC and RSA keys', async (_tool, options) => {
    for (const kind of ['P-384', 'RSA-2048'] as const) {
      const own = certified('own', { issuer: root, key: keyOf(kind) })
      await expectSigning(fileOf(pkcs12(own, options)), passphraseFile(), own)
      const keystore = directoryOf({ 'keystore.p12': pkcs12(own, options), passphrase: 'geheim' })
      await expectSigning(keystore, undefined, own)
    }
  })

  test('files of a Kubernetes volume come from one version of it', async () => {
    const [version, path] = [directoryOf(signingFiles()), directoryOf({})]
    symlinkSync(version, join(path, '..data'))
    for (const name of ['tls.crt', 'tls.key', 'ca.crt']) symlinkSync(join('..data', name), join(path, name))
    await expectSigning(path)
  })

  test('the key of servers comes with all authorities up to the root', async () => {
    const path = directoryOf({
      'tls.crt': server.cert + signing.cert,
      'tls.key': server.key,
      'ca.crt': root.cert,
    })
    const { certificate, chain, warnings } = await read('server', path)
    expect({ certificate, chain, warnings }).toEqual({
      certificate: server.cert,
      chain: [signing.cert, root.cert],
      warnings: [],
    })
  })

  test('a key of tokens needs no certificate', async () => {
    expect(await read('token', directoryOf({ 'tls.key': rsa2048 }))).toEqual({
      privateKey: rsa2048,
      certificate: undefined,
      chain: [],
      warnings: [],
    })
  })
})

describe('what is wrong with the files', () => {
  const remove = (name: string) => directoryOf({ ...signingFiles(), [name]: undefined })

  test('a missing path', async () => {
    expect(await refusal('signing', join(directory, 'none'))).toBe(
      'OVERLAY_KEY PATH: no such file or directory: check the path',
    )
  })
  test('a directory without a key', async () => {
    expect(await refusal('signing', remove('tls.key'))).toBe(
      'OVERLAY_KEY tls.key: no such file: the directory must have tls.key and tls.crt, or keystore.p12',
    )
  })
  test('a directory without a certificate', async () => {
    expect(await refusal('signing', remove('tls.crt'))).toBe(
      'OVERLAY_KEY tls.crt: no certificate in it: write the certificate of the key into it',
    )
  })
  test('a directory without the root', async () => {
    expect(await refusal('signing', remove('ca.crt'))).toBe(
      "OVERLAY_KEY tls.crt: the chain ends at 'O=example, CN=signing' and does not reach a root: " +
        "add the certificate of 'O=example, CN=root', and those above it up to the root",
    )
  })
  test('a file that is neither PEM nor PKCS#12', async () => {
    for (const content of ['nonsense', Buffer.from('3003020103', 'hex'), Buffer.alloc(20_000, 0x30)])
      expect(await refusal('signing', fileOf(content))).toBe(
        'OVERLAY_KEY PATH: neither PEM nor PKCS#12: provide the key in one of these forms',
      )
  })
  test('an empty file, one without a key and one without a certificate', async () => {
    expect(await refusal('signing', fileOf(''))).toMatch(/: empty: /)
    expect(await refusal('signing', fileOf(signing.cert))).toMatch(
      /: no private key in it: provide the key in PEM/,
    )
    expect(await refusal('signing', fileOf(signing.key))).toMatch(
      /: no certificate in it: add the certificate/,
    )
  })
  test('a file that is too large', async () => {
    expect(await refusal('signing', fileOf(Buffer.alloc(256 * 1024 + 1)))).toMatch(/larger than 256 KiB/)
  })
  test('several keys', async () => {
    expect(await refusal('signing', fileOf(signing.key + root.key + signing.cert))).toBe(
      'OVERLAY_KEY PATH: it has 2 private keys: leave only one in it',
    )
  })
  test('a damaged key and a damaged certificate', async () => {
    const cut = (pem: string) => pem.replace(/\n.{20}/, '\n')
    expect(await refusal('signing', fileOf(cut(signing.key) + signing.cert))).toMatch(/key cannot be decoded/)
    expect(await refusal('signing', fileOf(signing.key + cut(signing.cert)))).toMatch(
      /certificate 1 cannot be decoded/,
    )
  })
  test('an encrypted key without a passphrase', async () => {
    const key = encrypted(signing.key, '-v2', 'aes-256-cbc')
    const path = directoryOf({ ...signingFiles(), 'tls.key': key })
    expect(await refusal('signing', path)).toBe(
      'OVERLAY_KEY tls.key: the key is encrypted and there is no passphrase: ' +
        'write it to passphrase, or name its file in OVERLAY_KEY_PASSPHRASE_FILE',
    )
    expect(await refusal('signing', fileOf(pkcs12(signing, [])))).toBe(
      'OVERLAY_KEY PATH: it is encrypted and there is no passphrase: ' +
        'name the file of its passphrase in OVERLAY_KEY_PASSPHRASE_FILE',
    )
  })
  test('a wrong passphrase', async () => {
    const wrong = fileOf('falsch')
    const remedy = 'check the file of the passphrase'
    for (const key of [
      encrypted(signing.key, '-v2', 'aes-256-cbc'),
      openssl(['ec', '-in', 'key', '-aes256', ...passOut], { key: signing.key }),
    ])
      expect(await refusal('signing', fileOf(key + signing.cert), wrong)).toBe(
        `OVERLAY_KEY PATH: the passphrase of the key is wrong: ${remedy}`,
      )
    for (const options of [[], ['-nomac'], ['-legacy']])
      expect(await refusal('signing', fileOf(pkcs12(signing, options)), wrong)).toBe(
        `OVERLAY_KEY PATH: its passphrase is wrong: ${remedy}`,
      )
  })
  test('an absent file of a passphrase', async () => {
    expect(await refusal('signing', fileOf(signing.key), join(directory, 'none'))).toMatch(
      /^OVERLAY_KEY_PASSPHRASE_FILE .*none: no such file or directory/,
    )
  })
  test('an outdated encryption', async () => {
    const key = encrypted(signing.key, '-v1', 'PBE-MD5-DES', '-provider', 'legacy', '-provider', 'default')
    expect(await refusal('signing', fileOf(key), fileOf('geheim'))).toMatch(
      /encrypted with an outdated method: convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc/,
    )
  })
  test('too many iterations, before they are made', async () => {
    const key = encrypted(signing.key, '-v2', 'aes-256-cbc', '-iter', '1000001')
    expect(await refusal('signing', fileOf(key), fileOf('geheim'))).toMatch(/more than 1000000 iterations/)
    const store = pkcs12(signing, ['-iter', '100001'])
    expect(await refusal('signing', fileOf(store), fileOf('geheim'))).toMatch(/more than 100000 iterations/)
  })
  test('structures nested in octets more deeply than PKCS#12 has them', async () => {
    let nested: Buffer = Buffer.from([0x30, 0])
    while (nested.length < 200_000) nested = element(0x30, element(0x04, nested))
    expect(await refusal('signing', fileOf(nested))).toMatch(/neither PEM nor PKCS#12/)
  })
  test('a pipe without a writer', async () => {
    const pipe = join(directoryOf({}), 'pipe')
    execFileSync('mkfifo', [pipe])
    expect(await refusal('signing', pipe)).toMatch(/not a file/)
  })
  test('a key that every user can read is a warning', async () => {
    const path = directoryOf(signingFiles())
    chmodSync(join(path, 'tls.key'), 0o644)
    chmodSync(join(path, 'tls.crt'), 0o644)
    const { warnings } = await read('signing', path)
    expect(warnings).toEqual([`OVERLAY_KEY ${join(path, 'tls.key')}: every user can read it: chmod o-r`])
  })
})

describe('what is wrong with the certificates', () => {
  const filesOf = (own: Certified, above: string = root.cert) =>
    directoryOf({ 'tls.crt': own.cert, 'tls.key': own.key, 'ca.crt': above })
  const extended = (...extensions: readonly string[]) =>
    certified('own', { issuer: root, extensions: [...authorityExtensions.slice(0, -1), ...extensions] })

  test('a key of another certificate', async () => {
    expect(await refusal('signing', directoryOf({ ...signingFiles(), 'tls.key': root.key }))).toBe(
      "OVERLAY_KEY tls.key: the key does not fit the certificate of 'O=example, CN=signing' in OVERLAY_KEY tls.crt: " +
        'provide the certificate that was issued for this key',
    )
  })
  test('one that has expired or is not valid yet', async () => {
    const path = filesOf(signing)
    expect(await refusal('signing', path, undefined, inDays(366))).toMatch(
      /^OVERLAY_KEY tls.crt: the certificate of 'O=example, CN=signing' has expired on \d{4}-\d\d-\d\d: renew it$/,
    )
    expect(await refusal('signing', path, undefined, inDays(-1))).toMatch(/is not valid before \d{4}-.*clock/)
  })
  test('an authority above that has expired', async () => {
    const old = certified('old root', { days: 5 })
    const own = certified('own', { issuer: old })
    expect(await refusal('signing', filesOf(own, old.cert), undefined, inDays(6))).toMatch(
      /'O=example, CN=old root' has expired/,
    )
  })
  test('one that is no authority', async () => {
    const own = certified('own', { issuer: root, extensions: ['basicConstraints=CA:FALSE'] })
    expect(await refusal('signing', filesOf(own))).toMatch(
      /CN=own' is not an authority: take a certificate with/,
    )
  })
  test('an authority that may not sign certificates', async () => {
    const own = certified('own', {
      issuer: root,
      extensions: [
        'basicConstraints=critical,CA:TRUE',
        'keyUsage=critical,digitalSignature',
        'subjectKeyIdentifier=hash',
      ],
    })
    expect(await refusal('signing', filesOf(own))).toMatch(/key usage without certificate signing/)
  })
  test('an authority for other purposes', async () => {
    const own = extended('subjectKeyIdentifier=hash', 'extendedKeyUsage=emailProtection')
    expect(await refusal('signing', filesOf(own))).toMatch(/restricts its purposes/)
  })
  test('an authority without a subject key identifier', async () => {
    const own = extended('subjectKeyIdentifier=none')
    expect(await refusal('signing', filesOf(own))).toMatch(
      /has no subject key identifier: issue it again with/,
    )
  })
  test('a root as signing authority, and another authority as root', async () => {
    expect(await refusal('signing', filesOf(root))).toMatch(
      /'O=example, CN=root' is a root: provide an authority that the root has certified, with the root in ca.crt$/,
    )
    expect(await refusal('root', filesOf(signing))).toMatch(
      /'O=example, CN=signing' is not a root: provide the key/,
    )
    expect((await read('root', filesOf(root))).chain).toEqual([])
  })
  test('a root whose path is too short', async () => {
    const strict = certified('strict', {
      extensions: ['basicConstraints=critical,CA:TRUE,pathlen:0', 'subjectKeyIdentifier=hash'],
    })
    const own = certified('own', { issuer: strict })
    expect(await refusal('signing', filesOf(own, strict.cert))).toMatch(
      /'O=example, CN=strict' allows 0 authorities below it, and there is one: take one with a longer path length/,
    )
  })
  test('weak keys and signatures', async () => {
    const weak = certified('weak', { issuer: root, key: newKey('RSA-1024') })
    expect(await refusal('signing', filesOf(weak))).toMatch(/the key is not accepted \(RSA key/)
    const odd = certified('odd', { issuer: root, key: newKey('secp256k1') })
    expect(await refusal('signing', filesOf(odd))).toMatch(/the key is not accepted \(EC key must be/)
    const weakRoot = certified('weak root', { key: newKey('RSA-1024') })
    expect(await refusal('signing', filesOf(certified('own', { issuer: weakRoot }), weakRoot.cert))).toMatch(
      /'O=example, CN=weak root' has a key that is not accepted/,
    )
    const sha1 = certified('sha1', { issuer: root, digest: 'sha1' })
    expect(await refusal('signing', filesOf(sha1))).toMatch(/signed with SHA-1 or another weak algorithm/)
  })
  test('a root signed with SHA-1 is accepted: its signature proves nothing', async () => {
    const old = certified('old', { digest: 'sha1' })
    const { chain } = await read('signing', filesOf(certified('own', { issuer: old }), old.cert))
    expect(chain).toEqual([old.cert])
  })

  const serverOf = (profile: Parameters<typeof certified>[1]) =>
    filesOf(
      certified('server', {
        issuer: root,
        key: rsa2048,
        extensions: serverExtensions('api.example', '192.0.2.1'),
        ...profile,
      }),
    )
  test('a server without the advertised hosts', async () => {
    const path = serverOf({ extensions: serverExtensions('other.example', '192.0.2.1') })
    expect(await refusal('server', path)).toBe(
      "OVERLAY_KEY tls.crt: the certificate of 'O=example, CN=server' lacks api.example, where clients and routers " +
        'connect (OVERLAY_ADDRESS, OVERLAY_CTRL_ADDRESS): issue it with these names, or change the addresses',
    )
  })
  test('a server whose certificate is for other purposes', async () => {
    const names = 'subjectAltName=DNS:api.example,IP:192.0.2.1'
    expect(await refusal('server', serverOf({ extensions: [names, 'extendedKeyUsage=clientAuth'] }))).toMatch(
      /is not for TLS servers: take one with the extended key usage serverAuth/,
    )
    expect(await refusal('server', serverOf({ extensions: [names, 'keyUsage=keyEncipherment'] }))).toMatch(
      /key usage without digital signature/,
    )
  })
  test('a server that signed itself', async () => {
    const own = certified('self', { key: rsa2048, extensions: serverExtensions('api.example', '192.0.2.1') })
    expect(await refusal('server', filesOf(own))).toMatch(/has signed itself: take one of an authority/)
  })
  test.each(['P-384', 'P-521', 'Ed25519'] as const)('a server key of kind %s', async (kind) => {
    expect(await refusal('server', serverOf({ key: keyOf(kind) }))).toBe(
      `OVERLAY_KEY tls.key: ${kind} cannot sign enrollment tokens, which the servers' key does: use RSA, or P-256`,
    )
  })
  test('a P-256 server key is accepted with a warning', async () => {
    const { warnings } = await read('server', serverOf({ key: newKey('P-256') }))
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/C SDKs before 0.32 cannot verify/)
  })
  test('a key of tokens that is not RSA', async () => {
    expect(await refusal('token', fileOf(newKey()))).toBe(
      'OVERLAY_KEY PATH: P-256 cannot sign tokens of OpenID Connect: clients verify RS256 only: use RSA of at least 2048 bits',
    )
  })
  test('a key of tokens of sessions that is not P-256', async () => {
    expect(await refusal('session', fileOf(rsa2048))).toBe(
      'OVERLAY_KEY PATH: RSA 2048 cannot sign tokens of sessions: use P-256',
    )
  })
})

const passOut = ['-passout', 'pass:geheim']

/** DER, with a length of three bytes. */
const element = (tag: number, content: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from([tag, 0x83, content.length >> 16, (content.length >> 8) & 0xff, content.length & 0xff]),
    content,
  ])

const encrypted = (key: string, ...options: readonly string[]): string =>
  openssl(['pkcs8', '-topk8', '-in', 'key', ...passOut, ...options], { key })

/** With the root, as operators export a chain. */
function pkcs12({ key, cert }: Certified, options: readonly string[]): Buffer {
  const args = [
    'pkcs12',
    '-export',
    '-in',
    'cert',
    '-inkey',
    'key',
    '-certfile',
    'root',
    ...passOut,
    ...options,
  ]
  return Buffer.from(openssl([...args, '-out', 'out'], { key, cert, root: root.cert }, 'out'), 'latin1')
}

test('a certificate that openssl made is unchanged', async () => {
  const { certificate } = await read('signing', directoryOf(signingFiles()))
  expect(new X509Certificate(certificate ?? '').raw).toEqual(new X509Certificate(signing.cert).raw)
})
