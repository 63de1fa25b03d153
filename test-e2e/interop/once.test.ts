import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { once } from './once.js'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
})
afterEach(() => rm(directory, { recursive: true }))

const maker = (path: string) => {
  const made: string[] = []
  const make = async () => {
    made.push(path)
    await writeFile(path, 'made')
  }
  return { made, make }
}

test('of those who ask at the same time, one makes it', async () => {
  const path = join(directory, 'thing')
  const { made, make } = maker(path)
  await Promise.all([once(path, make), once(path, make), once(path, make)])
  expect(made).toEqual([path])
  expect(await readFile(path, 'utf8')).toBe('made')
})

test('after one has failed or died, another makes it', async () => {
  const path = join(directory, 'thing')
  const { made, make } = maker(path)
  await expect(once(path, () => Promise.reject(new Error('no network')))).rejects.toThrow('no network')
  const dead = execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' })
  await writeFile(`${path}.lock`, dead)
  await once(path, make)
  expect(made).toEqual([path])
})
