import { expect, test } from 'vitest'
import { readArguments } from './arguments.js'

test('an unknown option is refused with those that there are', () => {
  expect(() => readArguments(['--replica', '2'])).toThrow(
    /Unknown option '--replica'.*The options are --replicas, --separate, --scale, --help$/,
  )
})
