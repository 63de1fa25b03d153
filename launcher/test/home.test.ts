import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dataDirectory, openHome } from '../src/home.js'

test('secrets are made once, and only their owner reads them', async () => {
  const directory = await place()
  const first = await openHome(directory)
  await first.release()
  const second = await openHome(directory)
  expect(second.secrets).toEqual(first.secrets)
  const isRoot = process.getuid?.() === 0 // whose processes pass through it, to their sockets
  expect((await stat(directory)).mode & 0o777).toBe(isRoot ? 0o711 : 0o700)
  expect((await stat(join(directory, 'secrets.json'))).mode & 0o777).toBe(0o600)
})

test('identity and pki have a key secret each, and pki keeps the one of a home in which they shared it', async () => {
  const directory = await place()
  const home = await openHome(directory)
  const { keySecrets, ...others } = home.secrets
  expect(keySecrets.identity).not.toBe(keySecrets.pki)
  await home.write('secrets.json', JSON.stringify({ ...others, keySecret: 'shared' }))
  await home.release()

  const older = await openHome(directory)
  await older.release()
  expect(older.secrets.keySecrets.pki).toBe('shared')
  expect(older.secrets.keySecrets.identity).toMatch(/^[\w-]{43}$/)
  const newer = await openHome(directory)
  onTestFinished(newer.release)
  expect(newer.secrets).toEqual(older.secrets)
})

test('a second launcher is refused while the first one lives', async () => {
  const directory = await place()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(other.pid))
  await expect(openHome(directory)).rejects.toThrow(`in use by another launcher, process ${other.pid}`)
})

test('what a killed launcher left behind refuses nobody', async () => {
  const directory = await place()
  const dead = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => dead.once('exit', resolve))
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(dead.pid))
  await expect(openHome(directory)).resolves.toBeDefined()
})

test('a database whose user may not enter the home lies with those of the system', async () => {
  if (process.getuid?.() !== 0) return // only root runs it as somebody else
  const directory = join(await place(), 'home')
  const home = await openHome(directory)
  onTestFinished(home.release)
  await chmod(join(directory, '..'), 0o700)
  const account = { uid: 65_533, gid: 65_533 }
  const elsewhere = await dataDirectory(home, 'postgres', account)
  expect(elsewhere).toBe(`/var/lib/overlay/${home.secrets.id}`)
  expect(await readlink(join(directory, 'postgres'))).toBe(elsewhere)
  expect(await dataDirectory(home, 'postgres', account)).toBe(elsewhere)
})

async function place(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
