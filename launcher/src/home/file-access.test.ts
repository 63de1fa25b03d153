import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { consoleDirectory } from './file-access.js'

const account = { uid: 61_000, gid: 61_000 }

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'overlay-console-'))
})
afterAll(() => rm(folder, { recursive: true }))

test('a directory without index.html is refused, with the name of the setting', async () => {
  await expect(consoleDirectory(folder, {})).rejects.toThrow(
    /OVERLAY_CONSOLE.*index\.html cannot be read: ENOENT/,
  )
  await expect(consoleDirectory(join(folder, 'none'), {})).rejects.toThrow(/OVERLAY_CONSOLE/)
})

test('a relative path is resolved', async () => {
  await writeFile(join(folder, 'index.html'), '')
  expect(await consoleDirectory(relative('', folder), {})).toBe(folder)
})

test('a directory that the account of the processes cannot read is refused', async () => {
  const index = join(folder, 'index.html')
  await writeFile(index, '')
  await chmod(index, 0o644)
  await chmod(folder, 0o700)
  await expect(consoleDirectory(folder, account)).rejects.toThrow(/OVERLAY_CONSOLE.*61000.*chmod/)
  await chmod(folder, 0o755)
  await chmod(index, 0o600)
  await expect(consoleDirectory(folder, account)).rejects.toThrow(/OVERLAY_CONSOLE/)
  await chmod(index, 0o644)
  expect(await consoleDirectory(folder, account)).toBe(folder)
})
