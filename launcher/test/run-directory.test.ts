import { chown, lstat, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeRunDirectory } from '../src/run-directory.js'

test('sockets lie in the home, where only their user enters, and what a killed launcher left is gone', async () => {
  const home = await place()
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
])('where the path of the home is %s, they lie in the temporary directory', async (_why, name) => {
  const home = join(await place(), name)
  await mkdir(home)
  const id = `test-${process.pid}`
  const run = await makeRunDirectory(home, id, own)
  expect(run.path).toBe(join(tmpdir(), `overlay-${id}`))
  expect(await modeOf(run.path)).toBe(0o700)
  await run.remove()
})

test('a directory that another user has put there is refused', async () => {
  if (process.getuid?.() !== 0) return // only root can make one for another user
  const home = await place()
  const path = join(home, 'run')
  await mkdir(path)
  await chown(path, 65_533, 65_533)
  await expect(makeRunDirectory(home, 'x', own)).rejects.toThrow(`${path} belongs to another user`)
})

const own = { processes: {}, database: {} }

const modeOf = async (path: string): Promise<number> => (await lstat(path)).mode & 0o777

async function place(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
