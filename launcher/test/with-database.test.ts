import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newSecrets } from '../src/secrets.js'
import { readLauncherSettings } from '../src/settings.js'
import { withDatabase } from '../src/with-database.js'

test('a home without a database of its own asks for DATABASE_URL, and gets no database', async () => {
  const home = await mkdtemp(join(tmpdir(), 'overlay-home-'))
  await writeFile(join(home, 'secrets.json'), JSON.stringify(newSecrets()), { mode: 0o600 })
  const settings = readLauncherSettings({ OVERLAY_HOME: home })
  await expect(
    withDatabase(
      settings,
      () => undefined,
      async () => 'done',
    ),
  ).rejects.toThrow(/set DATABASE_URL/)
  expect(await readdir(home)).toEqual(['secrets.json'])
  await rm(home, { recursive: true })
})
