import { expect, test } from 'vitest'
import { versionRange } from './version-range.js'

test.each([
  ['>=5.0.0', ['5.0.0', '6.1.0', '5.0.1-rc.1'], ['4.9.9', '5.0.0-rc.1']],
  ['>5.0.0 <6.0.0', ['5.0.1', '5.9.9'], ['5.0.0', '6.0.0', '4.0.0']],
  ['> 5.0.0  <= 6.0.0', ['6.0.0'], ['5.0.0', '6.0.1']],
  ['<2.0.0 || >=3.0.0', ['1.9.9', '3.0.0'], ['2.0.0', '2.9.9']],
  ['1.2.3', ['1.2.3', '1.2.3+build'], ['1.2.4', '1.2.3-rc']],
  ['==1.2.3', ['1.2.3'], ['1.2.4']],
  ['!1.2.3', ['1.2.4', '1.2.2'], ['1.2.3']],
  ['!=1.2.x', ['1.3.0', '1.1.9'], ['1.2.0', '1.2.9']],
  ['1.x', ['1.0.0', '1.9.9'], ['2.0.0', '0.9.9']],
  ['>1.2.x', ['1.3.0'], ['1.2.9']],
  ['<=1.2.x', ['1.2.9'], ['1.3.0']],
  ['>1.0.0-alpha.9', ['1.0.0-alpha.10', '1.0.0-beta', '1.0.0'], ['1.0.0-alpha.1', '1.0.0-alpha']],
])('%s', (text, inside, outside) => {
  const range = versionRange(text)
  expect(inside.map((version) => [version, range?.(version)])).toEqual(inside.map((v) => [v, true]))
  expect(outside.map((version) => [version, range?.(version)])).toEqual(outside.map((v) => [v, false]))
})

test.each([
  '',
  'not-a-version',
  '>=',
  '1.2',
  '1.02.3',
  '>=1.0.0 ||',
  '|| 1.0.0',
  '~1.2.3',
  '^1.0.0',
  '1.2.3.4',
])('%j is no range', (text) => {
  expect(versionRange(text)).toBeUndefined()
})

test.each(['', '10', '6.1', 'v6.1.0', '06.1.0', '6.1.0-'])('%j is no version, and in no range', (version) => {
  expect(versionRange('>=0.0.0')?.(version)).toBe(false)
})
