import { spawn } from 'node:child_process'
import { chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withClient } from '@overlay/launcher/testing'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { withDatabase } from '../src/commands/with-database.js'
import { openHome } from '../src/home/home.js'
import { newSecrets } from '../src/home/secrets.js'
import { readLauncherSettings } from '../src/settings/settings.js'

let home: string

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(home, { recursive: true }))
})

const ask = () =>
  withDatabase(
    readLauncherSettings({ OVERLAY_HOME: home }),
    () => undefined,
    (url) => withClient(url, (client) => client.query('select 1')),
  )

test('a command needs an installation', async () => {
  await expect(ask()).rejects.toThrow(`no installation in ${home}: set OVERLAY_HOME`)
})

test('a home without a database of its own asks for DATABASE_URL, and gets no database', async () => {
  await writeFile(join(home, 'secrets.json'), JSON.stringify(newSecrets()), { mode: 0o600 })
  await expect(ask()).rejects.toThrow(/set DATABASE_URL/)
  expect(await readdir(home)).toEqual(['secrets.json'])
})

test('a command waits for no product that is starting or stopping, and says so', async () => {
  await (await openHome(home)).release()
  await mkdir(join(home, 'postgres'))
  const launcher = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void launcher.kill())
  await writeFile(join(home, 'launcher.pid'), String(launcher.pid))
  await expect(ask()).rejects.toThrow('the product is starting or stopping')
})

test('a command creates no database in place of one that is missing', async () => {
  await (await openHome(home)).release()
  await mkdir(join(home, 'postgres'))
  await writeFile(join(home, 'ca.pem'), '')
  await expect(ask()).rejects.toThrow('mount the directory, or restore a backup')
  expect(await readdir(join(home, 'postgres'))).toEqual([])
})

test.runIf(process.getuid?.() === 0)('a command is refused to another user than the owner', async () => {
  await (await openHome(home)).release()
  await chown(home, 12_345, 12_345)
  await expect(ask()).rejects.toThrow('belongs to user 12345: run this as its owner, not as root')
})
