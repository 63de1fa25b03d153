import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { bufferedOutput } from './buffered-output.js'

function openFile() {
  const directory = mkdtempSync(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'log')
  const fd = openSync(path, 'a')
  return { fd, text: () => readFileSync(path, 'utf8') }
}

test('lines are written in their order, however many, without being asked', async () => {
  const { fd, text } = openFile()
  const output = bufferedOutput(fd)
  const lines = Array.from({ length: 20_000 }, (_, n) => `line ${n}\n`)
  for (const line of lines) output.write(line)
  await expect.poll(text).toBe(lines.join(''))
})

test('a flush writes what is left at once', () => {
  const { fd, text } = openFile()
  const output = bufferedOutput(fd)
  output.write('a\n')
  output.write('b\n')
  output.flushSync()
  expect(text()).toBe('a\nb\n')
})

test('lines are dropped when the reader is gone', () => {
  const { fd } = openFile()
  const output = bufferedOutput(fd)
  closeSync(fd)
  output.write('a\n')
  output.flushSync()
  output.flushSync()
})
