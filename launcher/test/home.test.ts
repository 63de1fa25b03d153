import { spawn } from 'node:child_process'
import {
  chmod,
  chown,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dataDirectory, openHome, removeStaleLock } from '../src/home/home.js'
import { claimHome } from '../src/home/home-directory.js'
import { runningLauncher } from '../src/home/installation.js'
import { startTimeOf } from '../src/system/process-identity.js'

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

test('identity and pki have a key secret each', async () => {
  const home = await openHome(await newDirectory())
  onTestFinished(home.release)
  expect(home.secrets.keySecrets.identity).not.toBe(home.secrets.keySecrets.pki)
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
  await expect(openHome(directory)).rejects.toThrow(
    `already running: process ${other.pid} uses OVERLAY_HOME ${directory}`,
  )
})

test('the lock of a killed launcher is ignored', async () => {
  const directory = await newDirectory()
  const dead = spawn(process.execPath, ['-e', ''])
  await new Promise((resolve) => dead.once('exit', resolve))
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(dead.pid))
  await expect(openHome(directory)).resolves.toBeDefined()
})

test('the lock of a killed launcher whose id another node program has got is ignored', async () => {
  const directory = await newDirectory()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  const killed = await openHome(directory)
  const started = await readFile(join(directory, 'launcher.start'), 'utf8')
  expect(started.split('\n')[0]).toBe(await readFile(join(directory, 'launcher.pid'), 'utf8'))
  await writeFile(join(directory, 'launcher.pid'), String(other.pid))
  await writeFile(join(directory, 'launcher.start'), started.replace(/^\d+/, String(other.pid)))
  expect(await runningLauncher(directory)).toBeUndefined()

  const next = await openHome(directory)
  expect(await readFile(join(directory, 'launcher.start'), 'utf8')).toBe(started)
  await next.release()
  await killed.release()
  expect(await readdir(directory)).toEqual(['secrets.json'])
})

test('a lock counts while the process runs that took it', async () => {
  const directory = await newDirectory()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  await writeFile(join(directory, 'launcher.pid'), String(other.pid))
  const start = await startTimeOf(other.pid ?? 0)
  expect(start).toBe(await startTimeOf(other.pid ?? 0))
  expect(start).not.toBe(await startTimeOf(process.pid))
  await writeFile(join(directory, 'launcher.start'), `${other.pid}\n${start}\n`)
  expect(await runningLauncher(directory)).toBe(other.pid)
  await writeFile(join(directory, 'launcher.start'), `${other.pid}\n${start}0\n`)
  expect(await runningLauncher(directory)).toBeUndefined()
  await writeFile(join(directory, 'launcher.start'), `1\n${start}0\n`) // of an earlier launcher
  expect(await runningLauncher(directory)).toBe(other.pid)
})

test('a lock that another launcher has taken meanwhile is not removed', async () => {
  const directory = await newDirectory()
  const file = join(directory, 'launcher.pid')
  await writeFile(file, '1234')
  await removeStaleLock(file, '12')
  expect(await readFile(file, 'utf8')).toBe('1234')
  await removeStaleLock(file, '1234')
  await removeStaleLock(file, '1234')
  expect(await readdir(directory)).toEqual([])
})

test('a lock with the id of this process is of a killed launcher', async () => {
  const directory = await newDirectory()
  await writeFile(join(directory, 'launcher.pid'), String(process.pid))
  expect(await runningLauncher(directory)).toBeUndefined()
})

test('a running launcher is named with its address', async () => {
  const directory = await newDirectory()
  const other = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
  onTestFinished(() => void other.kill())
  await (await openHome(directory)).release()
  await writeFile(join(directory, 'launcher.pid'), String(other.pid))
  await writeFile(join(directory, 'launcher.address'), 'localhost:1280\n')
  await expect(openHome(directory)).rejects.toThrow('already running at https://localhost:1280: process')
})

test.each<[string, string, (directory: string) => Promise<unknown>]>([
  ['has files of others', 'is not empty, and it is not a home', (at) => writeFile(join(at, 'notes.txt'), '')],
  [
    'has data of the product without secrets',
    'has data of the product, but no secrets.json',
    (at) => mkdir(join(at, 'postgres')),
  ],
  [
    'can be written by other users',
    'can be written by other users: run chmod go-w',
    (at) => chmod(at, 0o777),
  ],
  ['is shared like /tmp', 'can be written by other users: run chmod go-w', (at) => chmod(at, 0o1777)],
  [
    'has secrets that are no JSON',
    'secrets.json is not JSON: restore it',
    (at) => secretsIn(at, '{"id": "x'),
  ],
  ['has empty secrets', 'secrets.json is empty: restore it', (at) => secretsIn(at, '')],
  [
    'has incomplete secrets',
    "secrets.json has no valid member 'id': restore it",
    (at) => secretsIn(at, '{}'),
  ],
  ['has secrets that others can read', 'run chmod 600', (at) => secretsIn(at, '{}', 0o644)],
])('a directory that %s is refused and keeps its mode and content', async (_what, message, prepare) => {
  const directory = await newDirectory()
  await chmod(directory, 0o755)
  await prepare(directory)
  const before = await stateOf(directory)
  await expect(openHome(directory)).rejects.toThrow(message)
  expect(await stateOf(directory)).toEqual(before)
})

test('messages about broken secrets do not quote them', async () => {
  const directory = await newDirectory()
  await secretsIn(directory, '{"id": "abc", "postgresPassword": "geheim')
  await expect(openHome(directory)).rejects.toThrow(/^((?!geheim).)*$/s)
})

test('the directory of the program, and those above it, are refused', async () => {
  const parent = await newDirectory()
  const program = join(parent, 'program')
  await mkdir(program)
  await secretsIn(parent, '{}')
  for (const directory of [program, parent])
    await expect(claimHome(directory, program), directory).rejects.toThrow('contains this program')
  expect(await claimHome(join(program, '.overlay'), program)).toBe(join(program, '.overlay'))
})

test('a directory of another user is refused and stays as it is, empty or with secrets', async () => {
  if (process.getuid?.() !== 0) return // only root can create one for another user
  const directory = await newDirectory()
  for (const prepare of [() => undefined, () => secretsIn(directory, '{}')]) {
    await prepare()
    await chown(directory, 65_533, 65_533)
    const before = await stateOf(directory)
    await expect(openHome(directory)).rejects.toThrow(
      'belongs to user 65533, and the product is started by root',
    )
    expect(await stateOf(directory)).toEqual(before)
  }
})

test('below a directory of another user, only the home is created', async () => {
  if (process.getuid?.() !== 0) return // only root can create one for another user
  const parent = await newDirectory()
  await chown(parent, 65_533, 65_533)
  const { mode, uid } = await stat(parent)
  const home = await openHome(join(parent, 'new', 'home'))
  onTestFinished(home.release)
  expect(await stat(parent)).toMatchObject({ mode, uid })
})

test('an empty directory is used; one that others can enter keeps its mode', async () => {
  const directory = await newDirectory()
  await chmod(directory, 0o755)
  await mkdir(join(directory, 'lost+found')) // of a new file system
  const home = await openHome(directory)
  onTestFinished(home.release)
  expect((await stat(directory)).mode & 0o777).toBe(0o755)
})

test('a directory with only the secrets of a backup is a home', async () => {
  const [first, second] = [await newDirectory(), await newDirectory()]
  const home = await openHome(first)
  await home.release()
  await copyFile(join(first, 'secrets.json'), join(second, 'secrets.json'))
  const restored = await openHome(second)
  onTestFinished(restored.release)
  expect(restored.secrets).toEqual(home.secrets)
})

test('members of the secrets that a newer version has added stay', async () => {
  const directory = await newDirectory()
  const home = await openHome(directory)
  await home.write('secrets.json', JSON.stringify({ ...home.secrets, later: 'kept' }))
  await home.release()
  const again = await openHome(directory)
  onTestFinished(again.release)
  expect(again.secrets).toEqual({ ...home.secrets, later: 'kept' })
})

test('a symbolic link leads to the home; to a missing directory it is refused', async () => {
  const parent = await newDirectory()
  const [link, target] = [join(parent, 'link'), join(parent, 'target')]
  await symlink(target, link)
  await expect(openHome(link)).rejects.toThrow('symbolic link to a missing directory')
  await mkdir(target, { mode: 0o700 })
  const home = await openHome(link)
  onTestFinished(home.release)
  expect(home.directory).toBe(target)
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
})

test.each([
  ['a file', 'is not a directory', 'file'],
  ['below a file', 'ENOTDIR: not a directory', 'file/home'],
])('%s is refused', async (_what, message, name) => {
  const parent = await newDirectory()
  await writeFile(join(parent, 'file'), '')
  await expect(openHome(join(parent, name))).rejects.toThrow(message)
})

test('a directory that this user cannot write to is refused', async () => {
  if (process.getuid?.() === 0) return // root can
  const directory = await newDirectory()
  await chmod(directory, 0o500)
  onTestFinished(() => chmod(directory, 0o700))
  await expect(openHome(directory)).rejects.toThrow(
    `cannot write to OVERLAY_HOME ${directory}: EACCES: permission denied`,
  )
  await expect(openHome(join(directory, 'new'))).rejects.toThrow('cannot use OVERLAY_HOME')
})

test('a run directory with files of others stays', async () => {
  const directory = await newDirectory()
  await (await openHome(directory)).release()
  await mkdir(join(directory, 'run'))
  await writeFile(join(directory, 'run', 'other.pid'), '1')
  await expect(openHome(directory)).rejects.toThrow('has files of other programs (other.pid)')
  expect(await readdir(join(directory, 'run'))).toEqual(['other.pid'])
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

const secretsIn = (directory: string, text: string, mode = 0o600): Promise<void> =>
  writeFile(join(directory, 'secrets.json'), text, { mode })

async function stateOf(directory: string): Promise<object> {
  const { mode, uid, gid } = await stat(directory)
  return { mode, uid, gid, names: await readdir(directory) }
}

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}
