import { chmod, chown, mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemDirectory } from '../src/home/system-directory.js'

test('a new directory can be entered by all users, regardless of the umask', async () => {
  const path = join(await newDirectory(), 'lib', 'overlay')
  const umask = process.umask(0o077)
  onTestFinished(() => void process.umask(umask))
  expect(await systemDirectory(path)).toBe(path)
  expect((await stat(path)).mode & 0o7777).toBe(0o755)
})

test.each<[string, string, (path: string) => Promise<void>]>([
  ['that cannot be entered', 'cannot be entered by other users', (path) => chmod(path, 0o700)],
  ['that others can write to', 'can be written by other users', (path) => chmod(path, 0o777)],
  ['of another user', 'belongs to user 65533', (path) => chown(path, 65_533, 65_533)],
])('an existing directory %s is refused and stays as it is', async (what, message, prepare) => {
  if (what === 'of another user' && process.getuid?.() !== 0) return // only root can create one
  const path = join(await newDirectory(), 'overlay')
  await mkdir(path)
  await prepare(path)
  const { mode, uid } = await stat(path)
  await expect(systemDirectory(path)).rejects.toThrow(message)
  expect(await stat(path)).toMatchObject({ mode, uid })
})

test('a symbolic link is refused', async () => {
  const path = join(await newDirectory(), 'overlay')
  await symlink('/', path)
  await expect(systemDirectory(path)).rejects.toThrow('is not a directory')
})

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
