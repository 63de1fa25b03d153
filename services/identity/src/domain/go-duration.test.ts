import { expect, test } from 'vitest'
import { goDuration } from './go-duration.js'

test.each([
  ['1m', 60_000],
  ['1h30m', 5_400_000],
  ['-1.5h', -5_400_000],
  ['+2s', 2000],
  ['300ms', 300],
  ['.5s', 500],
  ['1.s', 1000],
  ['1500us', 1.5],
  ['1500µs', 1.5],
  ['0', 0],
  ['24h0m1s', 86_401_000],
])('%s', (text, ms) => {
  expect(goDuration(text)).toBe(ms)
})

test.each(['', 'abc', '1', '1d', '1m ', ' 1m', '1m-2s', '1 m', '.s', '--1m', '9999999999h', 'Infinitys'])(
  '%j is no duration',
  (text) => {
    expect(goDuration(text)).toBeUndefined()
  },
)
