import { expect, test } from 'vitest'
import { CONNECTION_SECONDS, REPLACE_MS } from '../limits.js'
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

test('a text that comes often takes the name of one that comes no more', () => {
  let nowMs = 0
  const nameOf = preparedNames(clientTexts, () => nowMs)
  const useless = Array.from({ length: clientTexts.names }, (_, i) => `select ${i}`)
  const names = useless.map((text) => often(nameOf, text))
  expect(often(nameOf, 'select new')).toBeUndefined()
  expect(nameOf('select 0')).toBe(names[0])
  nowMs += 60_000
  const name = nameOf('select new')
  expect(name).toEqual(expect.any(String))
  expect(names).not.toContain(name)
  expect([nameOf('select 0'), nameOf('select 1')]).toEqual([names[0], undefined])
})

test('texts that change all the time make a bounded number of names within the life of a connection', () => {
  let nowMs = 0
  const nameOf = preparedNames(clientTexts, () => nowMs)
  const names = new Set<string | undefined>()
  for (let i = 0; i < 10_000; i++) {
    nowMs = (i * CONNECTION_SECONDS * 1000) / 10_000
    names.add(often(nameOf, `select ${i}`))
  }
  expect(names.size).toBeLessThanOrEqual(clientTexts.names + (CONNECTION_SECONDS * 1000) / REPLACE_MS + 1)
})
