import { createPrivateKey, createPublicKey, verify, X509Certificate } from 'node:crypto'
import { forYears, issueCa, issueLeaf, issueServer, openSigner, withCommonName } from '@overlay/x509'
import { expect, test } from 'vitest'
import { type KeyKind, newCsr, newKey, openssl, verifies } from '../../test/openssl.js'
import { readCsr } from './csr.js'
import { enrollmentJwt } from './sign-jwt.js'

const now = new Date()
const trustDomain = 'net.example'
const root = await issueCa({ privateKey: newKey(), commonName: 'root', trustDomain, now })
const signing = await issueCa({
  privateKey: newKey(),
  commonName: 'signing',
  trustDomain,
  now,
  signer: openSigner(root),
})
const signer = openSigner(signing)
const bundle = root.pem + signing.pem

const leafOf = async (pem: string, role: 'client' | 'server' = 'client', names = false) => {
  const { altNames, ...csr } = await readCsr(pem)
  return issueLeaf(signer, { ...csr, altNames: names ? altNames : [], role, validity: forYears(1, now) })
}
const textOf = (pem: string, ...args: string[]) =>
  openssl(['x509', '-noout', '-in', 'pem', ...args], { pem })
    .replace(/\s+/g, ' ')
    .trim()

test('a chain from leaf to root is accepted by openssl', async () => {
  const leaf = await leafOf(newCsr())
  expect(verifies(leaf + signing.pem, root.pem, 'sslclient')).toBe('chain: OK')
  expect(() => verifies(leaf + signing.pem, root.pem, 'sslserver')).toThrow(/unsuitable certificate purpose/)
})

test('authorities say what they are and to which trust domain they belong', () => {
  const args = ['-ext', 'basicConstraints,keyUsage,subjectAltName']
  const usages = 'X509v3 Key Usage: critical Digital Signature, Certificate Sign, CRL Sign'
  const domain = 'X509v3 Subject Alternative Name: URI:spiffe://net.example'
  expect(textOf(root.pem, ...args)).toBe(`X509v3 Basic Constraints: critical CA:TRUE ${usages} ${domain}`)
  expect(textOf(signing.pem, ...args)).toBe(
    `X509v3 Basic Constraints: critical CA:TRUE, pathlen:0 ${usages} ${domain}`,
  )
})

test('a leaf has the profile of the network, whatever its request asks for', async () => {
  const more = ['-addext', 'subjectAltName=DNS:x.example', '-addext', 'basicConstraints=CA:TRUE']
  const leaf = await leafOf(newCsr('/C=US/DC=example/O=o/OU=a+OU=b/CN=device one', { more }))
  expect(textOf(leaf, '-ext', 'keyUsage,extendedKeyUsage,basicConstraints,subjectAltName')).toBe(
    'X509v3 Key Usage: critical Digital Signature, Key Encipherment, Data Encipherment' +
      ' X509v3 Extended Key Usage: TLS Web Client Authentication',
  )
  expect(textOf(leaf, '-subject')).toBe(
    'subject=C = US, DC = example, O = o, OU = a + OU = b, CN = device one',
  )
  expect(textOf(leaf, '-serial')).toMatch(/^serial=[4-7][0-9A-F]{31}$/)
  const { validFrom, validTo } = new X509Certificate(leaf)
  expect(Math.round((Date.parse(validTo) - Date.parse(validFrom)) / 3_600_000 / 24)).toBeOneOf([365, 366])
  expect(Date.parse(validFrom)).toBeLessThan(now.getTime() - 59_000)
})

test('a router keeps the names of its request', async () => {
  const names = 'DNS:a.example,IP:127.0.0.1,IP:::1,URI:spiffe://x/y,email:a@b.example'
  const leaf = await leafOf(newCsr('/CN=r', { more: ['-addext', `subjectAltName=${names}`] }), 'server', true)
  expect(new X509Certificate(leaf).subjectAltName).toBe(
    'DNS:a.example, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, URI:spiffe://x/y, email:a@b.example',
  )
  expect(verifies(leaf + signing.pem, root.pem, 'sslserver')).toBe('chain: OK')
})

test.each(['P-384', 'P-521', 'RSA-2048', 'Ed25519'] satisfies KeyKind[])(
  'a key %s stays the one of the request',
  async (kind) => {
    const key = newKey(kind)
    const leaf = await leafOf(newCsr('/CN=x', { key }))
    expect(new X509Certificate(leaf).checkPrivateKey(createPrivateKey(key))).toBe(true)
    expect(verifies(leaf + signing.pem, root.pem, 'sslclient')).toBe('chain: OK')
  },
)

test('a common name can be set, and the rest of the subject stays', async () => {
  const csr = await readCsr(newCsr('/C=US/CN=someone/O=o'))
  const subject = withCommonName(csr.subject, 'r1')
  const leaf = await issueLeaf(signer, { ...csr, subject, role: 'client', validity: forYears(1, now) })
  expect(new X509Certificate(leaf).subject).toBe('C=US\nO=o\nCN=r1')
})

test('what gateways serve is good for servers and clients, under all its names', async () => {
  const hosts = ['localhost', '127.0.0.1', '::1', 'api.example']
  const { pem } = await issueServer(signer, { privateKey: newKey(), hosts, now })
  const server = new X509Certificate(pem)
  expect([server.checkHost('api.example'), server.checkHost('localhost')]).toEqual([
    'api.example',
    'localhost',
  ])
  expect([server.checkIP('127.0.0.1'), server.checkIP('::1')]).toEqual(['127.0.0.1', '::1'])
  expect(verifies(pem + signing.pem, bundle, 'sslserver')).toBe('chain: OK')
  expect(verifies(pem + signing.pem, bundle, 'sslclient')).toBe('chain: OK')
})

test.each([
  ['P-256', 'ES256'],
  ['RSA-2048', 'RS256'],
] satisfies [KeyKind, string][])(
  'an enrollment token is verified with the key %s that signed it',
  async (kind, alg) => {
    const privateKey = createPrivateKey(newKey(kind))
    const token = 'a83d5a3c-7b3d-4d1c-9d0e-2f5e7f0c1b2a'
    const expiresAt = new Date('2031-01-01T00:00:00.500Z')
    const noOwner = { edgeRouterId: null, transitRouterId: null, caId: null, username: null }
    const jwt = await enrollmentJwt(
      { address: 'localhost:1280', key: privateKey, keyId: 'abc' },
      { ...noOwner, id: 'e1', identityId: 'i1', token, method: 'ott', expiresAt },
    )
    const [header = '', claims = '', signature = ''] = jwt.split('.')
    const decoded = [header, claims].map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
    expect(decoded).toEqual([
      { alg, kid: 'abc', typ: 'JWT' },
      {
        iss: 'https://localhost:1280',
        sub: 'i1',
        aud: [''],
        exp: 1924992000,
        jti: token,
        em: 'ott',
        ctrls: null,
      },
    ])
    const key = createPublicKey(privateKey)
    const signed = Buffer.from(`${header}.${claims}`)
    const bytes = Buffer.from(signature, 'base64url')
    expect(verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, bytes)).toBe(true)
  },
)

test.each<KeyKind>(['RSA-2048', 'P-256', 'P-384', 'P-521', 'Ed25519'])(
  'an authority with a %s key issues certificates that OpenSSL accepts',
  async (kind) => {
    const own = await issueCa({ privateKey: newKey(kind), commonName: kind, trustDomain, now })
    const { altNames: _, ...csr } = await readCsr(newCsr())
    const leaf = await issueLeaf(openSigner(own), {
      ...csr,
      altNames: [],
      role: 'client',
      validity: forYears(1, now),
    })
    expect(verifies(leaf, own.pem, 'sslclient')).toBe('chain: OK')
  },
)
