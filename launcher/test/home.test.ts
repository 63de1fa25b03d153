import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dataDirectory, openHome } from '../src/home.js'

test('secrets are generated once, and only their owner can read them', async () => {
  const directory = await newDirectory()
  const first = await openHome(directory)
  await first.release()
  const second = await openHome(directory)
  expect(second.secrets).toEqual(first.secrets)
  const isRoot = process.getuid?.() === 0 // then processes of other accounts enter it to reach their sockets
  expect((await stat(directory)).mode & 0o777).toBe(isRoot ? 0o711 : 0o700)
  expect((await stat(join(directory, 'secrets.json'))).mode & 0o777).toBe(0o600)
})

test('identity and pki have a key secret each; in a home with a shared one, pki keeps it', async () => {
  const directory = await newDirectory()
  const home = await openHome(directory)
  const { keySecrets, ...rest } = home.secrets
  expect(keySecrets.identity).not.toBe(keySecrets.pki)
  await home.write('secrets.json', JSON.stringify({ ...rest, keySecret: 'shared' }))
  await home.release()

  const older = await openHome(directory)
  await older.release()
  expect(older.secrets.keySecrets.pki).toBe('shared')
  expect(older.secrets.keySecrets.identity).toMatch(/^[\w-]{43}$/)
  const newer = await openHome(directory)
  onTestFinished(newer.release)
  expect(newer.secrets).toEqual(older.secrets)
})

test('a home from before a service existed gets a password for it, and keeps the others', async () => {
  const directory = await newDirectory()
  const home = await openHome(directory)
  const { pki, ...older } = home.secrets.rolePasswords
  await home.write('secrets.json', JSON.stringify({ ...home.secrets, rolePasswords: older }))
  await home.release()

  const newer = await openHome(directory)
  onTestFinished(newer.release)
  expect(newer.secrets.rolePasswords).toEqual({ ...older, pki: expect.stringMatching(/^[\w-]{32}$/) })
  expect(newer.secrets.rolePasswords.pki).not.toBe(pki)
})

test('a second launcher is refused while the first one runs', async () => {
  const directory = await newDirectory()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(other.pid))
  await expect(openHome(directory)).rejects.toThrow(`in use by another launcher, process ${other.pid}`)
})

test('the lock of a killed launcher is ignored', async () => {
  const directory = await newDirectory()
  const dead = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => dead.once('exit', resolve))
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(dead.pid))
  await expect(openHome(directory)).resolves.toBeDefined()
})

test('a database whose user cannot enter the home is in a directory of the system', async () => {
  if (process.getuid?.() !== 0) return // only root runs it as another user
  const directory = join(await newDirectory(), 'home')
  const home = await openHome(directory)
  onTestFinished(home.release)
  await chmod(join(directory, '..'), 0o700)
  const account = { uid: 65_533, gid: 65_533 }
  const target = await dataDirectory(home, 'postgres', account)
  expect(target).toBe(`/var/lib/overlay/${home.secrets.id}`)
  expect(await readlink(join(directory, 'postgres'))).toBe(target)
  expect(await dataDirectory(home, 'postgres', account)).toBe(target)
})

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
