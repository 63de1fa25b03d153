import { expect, test } from 'vitest'
import { clientTexts, ownTexts, preparedNames } from './prepared.js'

const often = (nameOf: (text: string) => string | undefined, text: string) =>
  Array.from({ length: 6 }, () => nameOf(text)).at(-1)

test('a text gets its name when it has come some times, and keeps it', () => {
  const nameOf = preparedNames(clientTexts)
  expect([nameOf('select 1'), nameOf('select 1')]).toEqual([undefined, undefined])
  const name = often(nameOf, 'select 1')
  expect(name).toEqual(expect.any(String))
  expect(nameOf('select 1')).toBe(name)
})

test('no two texts have one name', () => {
  const nameOf = preparedNames(clientTexts)
  const names = Array.from({ length: 50 }, (_, i) => often(nameOf, `select ${i}`))
  expect(new Set(names).size).toBe(50)
})

test('texts of any number and length leave the number of names as it is', () => {
  const nameOf = preparedNames(clientTexts)
  const first = often(nameOf, 'select 0')
  for (let i = 1; i < 1000; i++) often(nameOf, `select ${i}`)
  const names = Array.from({ length: 1000 }, (_, i) => nameOf(`select ${i}`))
  expect(names.filter(Boolean)).toHaveLength(clientTexts.names)
  expect(names[0]).toBe(first)
  expect(often(preparedNames(clientTexts), 'x'.repeat(10_000))).toBeUndefined()
})

test('texts of clients take no names from our own', () => {
  const [own, clients] = [preparedNames(ownTexts), preparedNames(clientTexts)]
  for (let i = 0; i < 1000; i++) often(clients, `select ${i}`)
  expect(often(own, 'select 1')).not.toBe(often(clients, 'select 1'))
})
