import { commonNameOf, derOf, encode, objectId, sequence, tag, text, textOf } from '@overlay/x509'
import { expect, test } from 'vitest'
import { newCsr, newKey } from '../../test/openssl.js'
import { CsrError, readCsr } from './csr.js'

const good = newCsr()

test.each(['P-256', 'P-384', 'P-521', 'RSA-2048', 'Ed25519'] as const)(
  'a request with a key %s is read',
  async (kind) => {
    const csr = await readCsr(newCsr('/CN=device', { key: newKey(kind) }))
    expect(csr.commonName).toBe('device')
    expect(csr.publicKey.length).toBeGreaterThan(40)
  },
)

test('a request signed with RSA-PSS is read', async () => {
  const more = ['-sigopt', 'rsa_padding_mode:pss', '-sigopt', 'rsa_pss_saltlen:-1', '-sha384']
  expect((await readCsr(newCsr('/CN=hsm', { key: newKey('RSA-2048'), more }))).commonName).toBe('hsm')
})

test('names of four kinds are read from the extension request', async () => {
  const names = 'DNS:a.example,IP:127.0.0.1,URI:spiffe://x/y,email:a@b.example,RID:1.2.3.4'
  const { altNames } = await readCsr(newCsr('/CN=r', { more: ['-addext', `subjectAltName=${names}`] }))
  expect(altNames.map(textOf)).toEqual(['a.example', '127.0.0.1', 'spiffe://x/y', 'a@b.example'])
})

test('a subject with a list among its attributes is read', () => {
  const address = encode(
    tag.set,
    sequence(objectId('2.5.4.16'), sequence(text('Main Street', tag.utf8String))),
  )
  const name = encode(tag.set, sequence(objectId('2.5.4.3'), text('device', tag.utf8String)))
  expect(commonNameOf(derOf(sequence(address, name)))).toBe('device')
})

test.each([
  ['UTF8String', '0c02c3bc', 'ü'],
  ['TeletexString', '1401fc', 'ü'],
  ['BMPString', '1e0400fc0061', 'üa'],
])('a common name that is a %s is read', (_what, value, name) => {
  const type = Buffer.from('0603550403', 'hex')
  const part = encode(tag.set, sequence(type, Buffer.from(value, 'hex')))
  expect(commonNameOf(derOf(sequence(part)))).toBe(name)
})

test.each([
  ['nothing', '', 'csrPem must not be null or empty'],
  ['no PEM', 'not a csr', 'could not decode csrPem as PEM'],
  ['PEM without an end', good.slice(0, -20), 'could not decode csrPem as PEM'],
  ['PEM of something else', '-----BEGIN X-----\nAAAA\n-----END X-----\n', 'could not parse CSR'],
  ['PEM of another character set', good.replace('MI', 'M*'), 'could not decode csrPem as PEM'],
  ['two blocks', good + good, 'unexpected PEM blocks at end of CSR'],
  ['text behind the block', `${good}x`, 'unexpected PEM blocks at end of CSR'],
  ['too long', good + ' '.repeat(20_000), 'csrPem is longer than 16384 characters'],
  ['a changed subject', changed(good, 'device', 'divece'), 'CSR signature validation failed'],
  ['a changed signature', flipped(good), 'CSR signature validation failed'],
  ['bytes behind the request', longer(good), 'could not parse CSR'],
  ['a short RSA key', newCsr('/CN=x', { key: newKey('RSA-1024') }), /must have 2048 to 8192 bits/],
  ['a key with a small exponent', newCsr('/CN=x', { key: newKey('RSA-e3') }), /odd exponent/],
  ['a foreign curve', newCsr('/CN=x', { key: newKey('secp256k1') }), /P-256, P-384 or P-521/],
  ['a curve whose id is cut off', changed(good, '\x3d\x03\x01\x07', '\x3d\x03\x01\x87'), /could not read/],
  [
    'an address of three bytes',
    newCsr('/CN=x', { more: ['-addext', 'subjectAltName=DER:30058703010203'] }),
    'could not parse the extensions of the CSR',
  ],
  ['SHA-1', newCsr('/CN=x', { key: newKey('RSA-2048'), more: ['-sha1'] }), /unsupported signature algorithm/],
])('a request is refused that is %s', async (_what, pem, message) => {
  const failure = await readCsr(pem).catch((err: unknown) => err)
  expect(failure).toBeInstanceOf(CsrError)
  expect((failure as Error).message).toMatch(message)
})

test('any bytes give a request or a CsrError', async () => {
  for (let at = 0; at < bytesOf(good).length; at++) {
    const bytes = bytesOf(good)
    bytes[at] = (bytes[at] ?? 0) ^ 0x15
    const failure = await readCsr(pemOf(bytes)).catch((err: unknown) => err)
    expect(failure).toBeInstanceOf(CsrError)
  }
})

function bytesOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')
}
function pemOf(bytes: Buffer): string {
  return `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`
}
function changed(pem: string, from: string, to: string): string {
  const bytes = bytesOf(pem)
  bytes.write(to, bytes.indexOf(from, 0, 'latin1'), 'latin1')
  return pemOf(bytes)
}
function flipped(pem: string): string {
  const bytes = bytesOf(pem)
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  return pemOf(bytes)
}
function longer(pem: string): string {
  return pemOf(Buffer.concat([bytesOf(pem), Buffer.from([5, 0])]))
}
