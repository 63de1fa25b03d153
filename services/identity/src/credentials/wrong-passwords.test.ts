import { expect, test } from 'vitest'
import { openWrongPasswords } from './wrong-passwords.js'

function passwords() {
  const clock = { ms: 0 }
  return { clock, ...openWrongPasswords(() => clock.ms) }
}

test('a history is recent until a wrong password is counted', () => {
  const { reading, counted, isRecent } = passwords()
  const before = reading()
  expect(isRecent(before)).toBe(true)
  counted()
  expect([isRecent(before), isRecent(reading())]).toEqual([false, true])
})

test('a history is not recent after a tenth of a second, because other replicas count too', () => {
  const { clock, reading, isRecent } = passwords()
  const before = reading()
  clock.ms = 99
  expect(isRecent(before)).toBe(true)
  clock.ms = 100
  expect(isRecent(before)).toBe(false)
})
