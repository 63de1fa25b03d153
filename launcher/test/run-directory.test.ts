import { chown, lstat, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeRunDirectory } from '../src/home/run-directory.js'

test('sockets are in the home, which only their user can enter, and those of a killed launcher are removed', async () => {
  const home = await newDirectory()
  const first = await makeRunDirectory(home, 'x', own)
  expect(first.path).toBe(join(home, 'run'))
  expect(await modeOf(first.path)).toBe(0o700)
  expect(await modeOf(first.rpc)).toBe(0o700)
  await writeFile(join(first.rpc, 'policy.sock'), '')
  const second = await makeRunDirectory(home, 'x', own)
  await expect(lstat(first.rpc)).rejects.toMatchObject({ code: 'ENOENT' })
  await second.remove()
  await expect(lstat(second.path)).rejects.toMatchObject({ code: 'ENOENT' })
})

test.each([
  ['too long for sockets', 'x'.repeat(80)],
  ['not possible in a list', 'a,b'],
])('if the path of the home is %s, sockets are in the temporary directory', async (_why, name) => {
  const home = join(await newDirectory(), name)
  await mkdir(home)
  const id = `test-${process.pid}`
  const run = await makeRunDirectory(home, id, own)
  expect(run.path).toBe(join(tmpdir(), `overlay-${id}`))
  expect(await modeOf(run.path)).toBe(0o700)
  await run.remove()
})

test('a directory of another user is refused', async () => {
  if (process.getuid?.() !== 0) return // only root can create one for another user
  const home = await newDirectory()
  const path = join(home, 'run')
  await mkdir(path)
  await chown(path, 65_533, 65_533)
  await expect(makeRunDirectory(home, 'x', own)).rejects.toThrow(`${path} belongs to another user`)
})

const own = { processes: {}, database: {} }

const modeOf = async (path: string): Promise<number> => (await lstat(path)).mode & 0o777

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
