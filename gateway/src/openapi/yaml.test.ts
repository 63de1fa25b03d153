import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { yamlOf } from './document.js'

test('what is written as YAML reads as the same data', () => {
  const data = {
    'a: b': ['yes', '200', 200, null, true, -1.5, '', '# no', 'two\nlines', '"quoted" \\'],
    nested: { list: [{ a: 1, b: [] }, [[{}], 'x']], none: {}, on: 'off' },
  }
  expect(parse(yamlOf(data))).toEqual(data)
})
