import { expect, test } from 'vitest'
import { algorithmIn } from './certificate.js'
import { type Element, encode, objectId, sequence } from './der.js'
import { signatureSchemeOf } from './signature.js'

const schemeOf = (id: string, ...parameters: Element[]) =>
  signatureSchemeOf(algorithmIn(sequence(objectId(id), ...parameters)))

const pss = '1.2.840.113549.1.1.10'
const hash = (id: string): Element => sequence(encode(0xa0, sequence(objectId(id))))

test.each([
  ['RSA with SHA-256', schemeOf('1.2.840.113549.1.1.11'), { digest: 'sha256', isPss: false }],
  ['ECDSA with SHA-512', schemeOf('1.2.840.10045.4.3.4'), { digest: 'sha512', isPss: false }],
  ['Ed25519', schemeOf('1.3.101.112'), { digest: null, isPss: false }],
  ['PSS with SHA-384', schemeOf(pss, hash('2.16.840.1.101.3.4.2.2')), { digest: 'sha384', isPss: true }],
])('%s has a scheme', (_what, scheme, expected) => {
  expect(scheme).toEqual(expected)
})

test.each([
  ['RSA with MD5', schemeOf('1.2.840.113549.1.1.4')],
  ['RSA with SHA-1', schemeOf('1.2.840.113549.1.1.5')],
  ['ECDSA with SHA-1', schemeOf('1.2.840.10045.4.1')],
  ['PSS without parameters', schemeOf(pss)],
  ['PSS without a hash, which is SHA-1', schemeOf(pss, sequence())],
  ['PSS with SHA-1', schemeOf(pss, hash('1.3.14.3.2.26'))],
])('%s has none', (_what, scheme) => {
  expect(scheme).toBeUndefined()
})
