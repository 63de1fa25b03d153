import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { expect, onTestFinished, test } from 'vitest'
import { openLogFile } from './log-file.js'

test('a log that has grown to its limit is set aside while it is written, and no line is lost', async () => {
  const { path, texts } = await place()
  const file = openLogFile(path, { maxBytes: 100, files: 50 })
  const [one, two] = [file.input(), file.input()]
  for (let n = 0; n < 100; n++) {
    one.write(`one ${n} `) // a line comes in parts
    two.write(`two ${n}\nand two ${n}\n`)
    one.write('end\n')
  }
  await Promise.all([one, two].map((input) => finished(input.end())))
  await file.close()

  const all = await texts()
  for (const text of all) expect(text.length).toBeLessThanOrEqual(100)
  const lines = all.join('').trimEnd().split('\n')
  const from = (words: RegExp) => lines.filter((line) => words.test(line))
  expect(from(/^one \d+ end$/)).toEqual(Array.from({ length: 100 }, (_, n) => `one ${n} end`))
  expect(from(/two/)).toEqual(Array.from({ length: 100 }, (_, n) => [`two ${n}`, `and two ${n}`]).flat())
  expect(lines).toHaveLength(300)
})

test('as many files are kept as are wanted, the newest', async () => {
  const { path, texts } = await place()
  for (let run = 0; run < 6; run++) {
    const file = openLogFile(path, { maxBytes: 10, files: 3 })
    await finished(file.input().end(`run ${run}\n`))
    await file.close()
  }
  expect(await texts()).toEqual(['run 3\n', 'run 4\n', 'run 5\n'])
})

test('a last line without an end gets one', async () => {
  const { path, texts } = await place()
  const file = openLogFile(path, { maxBytes: 100, files: 2 })
  await finished(file.input().end('half'))
  await file.close()
  expect(await texts()).toEqual(['half\n'])
})

test('a file that cannot be written is said once, and its writers go on', async () => {
  const { path } = await place()
  const said: string[] = []
  const file = openLogFile(join(path, 'no-directory'), { maxBytes: 100, files: 2 }, (line) => said.push(line))
  const input = file.input()
  input.write('one\n')
  await finished(input.end('two\n'))
  await file.close()
  expect(said).toEqual([expect.stringContaining('lines are lost')])
})

/** A file to be, and what lies there: the oldest first. */
async function place() {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const age = (name: string) => Number(/\.(\d+)$/.exec(name)?.[1] ?? 0)
  return {
    path: join(directory, 'example.log'),
    async texts() {
      const names = (await readdir(directory)).sort((a, b) => age(b) - age(a))
      return Promise.all(names.map((name) => readFile(join(directory, name), 'utf8')))
    },
  }
}
