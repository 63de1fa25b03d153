import type { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { authority, certify } from '../../test/certificates.js'
import { subjectTextOf } from './leaf.js'

const subjectOf = async (name: string): Promise<X509Certificate> =>
  (await certify({ name, issuer: await authority('signer') })).certificate

test.each([
  ['the last part comes first', 'one,O=example,C=US', 'C=US,O=example,CN=one'],
  ['parts of one part stay together', 'one+OU=a,O=example', 'O=example,CN=one+OU=a'],
  ['what would end a part is escaped', 'a\\, b \\+ c', 'CN=a\\, b \\+ c'],
  ['letters stay letters', 'Zoë', 'CN=Zoë'],
])('%s', async (_rule, name, expected) => {
  expect(subjectTextOf(await subjectOf(name))).toBe(expected)
})

test('an empty subject is an empty text', () => {
  expect(subjectTextOf({ subject: undefined } as unknown as X509Certificate)).toBe('')
})
