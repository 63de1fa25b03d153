import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { removeStaleSocket } from './unix-socket.js'

async function newPath(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(directory, { recursive: true }))
  return join(directory, 'a.sock')
}

test('the socket of a killed process is removed', async () => {
  const path = await newPath()
  const script = `require('net').createServer().listen(process.argv[1], () => console.log())`
  const server = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout, 'data')
  server.kill('SIGKILL')
  await once(server, 'exit')
  expect((await lstat(path)).isSocket()).toBe(true)
  await removeStaleSocket(path)
  await expect(lstat(path)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('a socket in use and a file that is no socket are kept and refused', async () => {
  const path = await newPath()
  await removeStaleSocket(path) // nothing is there
  const server = createServer().listen(path)
  await once(server, 'listening')
  await expect(removeStaleSocket(path)).rejects.toThrow('in use')
  await new Promise((resolve) => server.close(resolve))
  await writeFile(path, '')
  await expect(removeStaleSocket(path)).rejects.toThrow('not a socket')
})
