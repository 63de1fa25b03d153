import { chmod, mkdir, mkdtemp, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openHome } from '../src/home/home.js'
import { snapshotsDirectory } from '../src/home/snapshots.js'
import { isReachable } from '../src/system/account.js'

test('only the processes can enter the directory of snapshots, also below new directories', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  await chmod(directory, 0o711)
  const home = await openHome(join(directory, 'home'))
  onTestFinished(home.release)
  const lines: string[] = []
  const snapshots = join(directory, 'new', 'below', 'snapshots')
  expect(await snapshotsDirectory({ snapshots }, home, (line) => lines.push(line))).toBe(snapshots)
  expect((await stat(snapshots)).mode & 0o777).toBe(0o700)
  expect(await isReachable(snapshots, home.accounts.processes)).toBe(true)
  expect(lines).toEqual([])
})

test('a directory that a link in the home names keeps its owner', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const home = await openHome(join(directory, 'home'))
  onTestFinished(home.release)
  const target = join(directory, 'backups')
  await mkdir(target)
  await symlink('../backups', join(home.directory, 'snapshots'))
  const { uid, mode } = await stat(target)
  expect(await snapshotsDirectory({ snapshots: undefined }, home, () => undefined)).toBe(target)
  expect(await stat(target)).toMatchObject({ uid, mode })
})
