import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { bindShared, type SharedSocket } from '../src/processes/shared-socket.js'
import { type Address, freePort } from '../src/system/ports.js'

/** Answers with its process id and the address of the client. */
const program = `
require('node:net')
  .createServer((socket) => socket.end(process.pid + ' ' + socket.remoteAddress))
  .listen({ fd: 4 }, () => console.log('listening'))`

test('connections go to all processes that listen, with the address of the client', async () => {
  const { address, socket } = await shared()
  const children = [await listening(socket), await listening(socket)]
  const pids = new Set<string>()
  await expect
    .poll(async () => {
      const [pid = '', source] = (await ask(address, '127.0.0.9')).split(' ')
      expect(source).toBe('127.0.0.9')
      return pids.add(pid).size
    })
    .toBe(2)
  expect([...pids].sort()).toEqual(children.map(({ pid }) => String(pid)).sort())
})

test('no connection is lost when a process ends', async () => {
  const { address, socket } = await shared()
  const [first, second] = [await listening(socket), await listening(socket)]
  await killed(first)
  const pids = await Promise.all(Array.from({ length: 20 }, () => ask(address)))
  expect(pids.every((answer) => answer.startsWith(`${second.pid} `))).toBe(true)
})

test('while no process listens, connections wait for the next one', async () => {
  const { address, socket } = await shared()
  await killed(await listening(socket))
  const waiting = ask(address)
  const { pid } = await listening(socket)
  expect(await waiting).toBe(`${pid} 127.0.0.1`)
})

test('connections are refused before a process listens, and after all have closed the socket', async () => {
  const { address, socket } = await shared()
  expect(await ask(address)).toBe('')
  const child = await listening(socket)
  socket.close()
  expect(await ask(address)).toBe(`${child.pid} 127.0.0.1`)
  await killed(child)
  expect(await ask(address)).toBe('')
})

test('an address that is taken is an error', async () => {
  const { address, socket } = await shared()
  await listening(socket)
  await expect(bindShared(address)).rejects.toThrow(`${address.port}: EADDRINUSE`)
})

async function shared(): Promise<{ address: Address; socket: SharedSocket }> {
  const address = { host: '127.0.0.1', port: await freePort() }
  const socket = await bindShared(address)
  onTestFinished(socket.close)
  return { address, socket }
}

async function listening({ fd }: SharedSocket): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ignore', fd],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  if (child.stdout) await once(child.stdout, 'data')
  return child
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function ask({ host, port }: Address, localAddress = '127.0.0.1'): Promise<string> {
  return text(connect({ host, port, localAddress })).catch(() => '')
}
