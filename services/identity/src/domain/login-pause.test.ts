import { expect, test } from 'vitest'
import { type Failures, isPaused } from './login-pause.js'

const none: Failures = { failures: 0, secondsAgo: Number.POSITIVE_INFINITY }
const tries = (more: object) => ({ here: none, everywhere: none, isFamiliar: false, ...more })
const failed = (failures: number, secondsAgo = 0): Failures => ({ failures, secondsAgo })

test.each([
  ['nothing was tried', {}, false],
  ['nine failures from here', { here: failed(9) }, false],
  ['ten failures from here', { here: failed(10) }, true],
  ['ten failures from here, a second ago', { here: failed(10, 1) }, false],
  ['thirteen failures from here, seven seconds ago', { here: failed(13, 7) }, true],
  ['thirteen failures from here, eight seconds ago', { here: failed(13, 8) }, false],
  ['any number of failures from here, less than a minute ago', { here: failed(5000, 59) }, true],
  ['any number of failures from here, a minute ago', { here: failed(5000, 60) }, false],
  ['ten failures from a familiar network', { here: failed(10), isFamiliar: true }, true],
  ['ninety-nine failures from anywhere', { everywhere: failed(99) }, false],
  ['a hundred failures from anywhere', { everywhere: failed(100) }, true],
  [
    'a hundred from anywhere, none from a familiar network',
    { everywhere: failed(100), isFamiliar: true },
    false,
  ],
  ['any number from anywhere, a minute ago', { everywhere: failed(5000, 60) }, false],
])('after %s a login is paused: %#', (_what, more, paused) => {
  expect(isPaused(tries(more))).toBe(paused)
})
