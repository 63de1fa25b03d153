import { expect, test } from 'vitest'
import { openKeptRows } from './kept-rows.js'

test('a row is found if it was made of the same', () => {
  const rows = openKeptRows()
  rows.keep('a', 'version 1', Buffer.from('{}'))
  expect(rows.find('a', 'version 1')?.toString()).toBe('{}')
  expect(rows.find('a', 'version 2')).toBeUndefined()
  expect(rows.find('b', 'version 1')).toBeUndefined()
})

test('a row keeps no memory but its own, and a large row none', () => {
  const rows = openKeptRows()
  rows.keep('small', '', Buffer.from('{}'))
  expect(rows.find('small', '')?.buffer.byteLength).toBe(2)
  rows.keep('large', '', Buffer.alloc(20_000))
  expect(rows.find('large', '')).toBeUndefined()
})

test('rows are likely while most of those asked for lately were found', () => {
  const rows = openKeptRows()
  expect(rows.areLikely()).toBe(false)
  for (let i = 0; i < 8; i++) rows.note(50, 50)
  expect(rows.areLikely()).toBe(true)
  rows.note(0, 0)
  expect(rows.areLikely()).toBe(true)
  for (let i = 0; i < 8; i++) rows.note(1, 50)
  expect(rows.areLikely()).toBe(false)
})
