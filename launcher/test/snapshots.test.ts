import { chmod, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isReachable } from '../src/account.js'
import { openHome } from '../src/home.js'
import { snapshotsDirectory } from '../src/snapshots.js'

test('the directory of snapshots is private to the processes, and they reach it below new directories', async () => {
  const place = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(place, { recursive: true }))
  await chmod(place, 0o711)
  const home = await openHome(join(place, 'home'))
  onTestFinished(home.release)
  const said: string[] = []
  const snapshots = join(place, 'new', 'below', 'snapshots')
  expect(await snapshotsDirectory({ snapshots }, home, (line) => said.push(line))).toBe(snapshots)
  expect((await stat(snapshots)).mode & 0o777).toBe(0o700)
  expect(await isReachable(snapshots, home.accounts.processes)).toBe(true)
  expect(said).toEqual([])
})
