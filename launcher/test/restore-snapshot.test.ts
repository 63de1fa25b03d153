import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { restoreSnapshot } from '../src/commands/restore-snapshot.js'
import { readLauncherSettings } from '../src/settings/settings.js'

test('a restore from a directory that does not exist says so, and creates nothing', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const missing = join(home, 'nope')
  const settings = readLauncherSettings({ OVERLAY_HOME: home })
  const restoring = restoreSnapshot(settings, missing, () => undefined)
  await expect(restoring).rejects.toThrow(new Error(`${missing} does not exist`))
  expect(await readdir(home)).toEqual([])
})
