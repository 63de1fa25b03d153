import type { Claim } from '@overlay/model'
import { expect, test } from 'vitest'
import { certify, SubjectAlternativeNameExtension } from '../../test/certificates.js'
import { claimIn, commonNameOf } from './claims.js'

const whole: Claim = {
  location: 'COMMON_NAME',
  matcher: 'ALL',
  matcherCriteria: '',
  parser: 'NONE',
  parserCriteria: '',
  index: 0,
}

const names = new SubjectAlternativeNameExtension([
  { type: 'dns', value: 'host.example' },
  { type: 'url', value: 'https://a.example/x' },
  { type: 'url', value: 'spiffe://trust/with,comma' },
  { type: 'email', value: 'ann@a.example' },
  { type: 'email', value: 'bob@b.example' },
])
const { certificate } = await certify({ name: 'dev-aa.bb.cc', extensions: [names] })

test.each<[string, Partial<Claim>, string | undefined]>([
  ['the common name', {}, 'dev-aa.bb.cc'],
  ['what follows a prefix', { matcher: 'PREFIX', matcherCriteria: 'dev-' }, 'aa.bb.cc'],
  ['what stands before a suffix', { matcher: 'SUFFIX', matcherCriteria: '.cc' }, 'dev-aa.bb'],
  [
    'a part of it',
    { matcher: 'PREFIX', matcherCriteria: 'dev-', parser: 'SPLIT', parserCriteria: '.', index: 1 },
    'bb',
  ],
  ['no part beyond the last', { parser: 'SPLIT', parserCriteria: '.', index: 3 }, undefined],
  ['nothing where the prefix is another', { matcher: 'PREFIX', matcherCriteria: 'prod-' }, undefined],
  ['the first URI', { location: 'SAN_URI' }, 'https://a.example/x'],
  [
    'the first of a scheme',
    { location: 'SAN_URI', matcher: 'SCHEME', matcherCriteria: 'spiffe' },
    'spiffe://trust/with,comma',
  ],
  ['the second address', { location: 'SAN_EMAIL', index: 1 }, 'bob@b.example'],
  [
    'the part of the address that fits',
    { location: 'SAN_EMAIL', matcher: 'SUFFIX', matcherCriteria: '@b.example' },
    'bob',
  ],
])('a claim finds %s', (_what, claim, value) => {
  expect(claimIn(certificate, { ...whole, ...claim })).toBe(value)
})

test('what no index holds is no claim', async () => {
  const { certificate: long } = await certify({ name: 'x'.repeat(2000) })
  expect(claimIn(long, whole)).toBeUndefined()
})

test('of several common names the last counts', async () => {
  const { certificate: two } = await certify({ name: 'one, CN=two' })
  expect(commonNameOf(two)).toBe('two')
})
