import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { expect, onTestFinished, test } from 'vitest'
import { openLogFile } from './log-file.js'

test('a log is rotated at its limit while it is written, and no line is lost', async () => {
  const { path, texts } = await newLog()
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

test('the newest files are kept, up to the limit', async () => {
  const { path, texts } = await newLog()
  for (let run = 0; run < 6; run++) {
    const file = openLogFile(path, { maxBytes: 10, files: 3 })
    await finished(file.input().end(`run ${run}\n`))
    await file.close()
  }
  expect(await texts()).toEqual(['run 3\n', 'run 4\n', 'run 5\n'])
})

test('a last line without a newline gets one', async () => {
  const { path, texts } = await newLog()
  const file = openLogFile(path, { maxBytes: 100, files: 2 })
  await finished(file.input().end('half'))
  await file.close()
  expect(await texts()).toEqual(['half\n'])
})

test('a file that cannot be written is reported once, and its writers continue', async () => {
  const { path } = await newLog()
  const reports: string[] = []
  const file = openLogFile(join(path, 'no-directory'), { maxBytes: 100, files: 2 }, (line) =>
    reports.push(line),
  )
  const input = file.input()
  input.write('one\n')
  await finished(input.end('two\n'))
  await file.close()
  expect(reports).toEqual([expect.stringContaining('lines are lost')])
})

/** A path for a log, and the content of its files, the oldest first. */
async function newLog() {
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
