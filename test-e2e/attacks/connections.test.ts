import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Network, startNetwork } from '../network.js'

const LIMIT = 30

let network: Network
let port: number // of a gateway
beforeAll(async () => {
  process.env.OVERLAY_MAX_CONNECTIONS_PER_SOURCE = String(LIMIT)
  network = await startNetwork({ gateways: 2 })
  port = Number(network.gateways[0]?.split(':')[1])
})
afterAll(async () => {
  delete process.env.OVERLAY_MAX_CONNECTIONS_PER_SOURCE
  await network[Symbol.asyncDispose]()
})

/** Sockets of the gateway that are connected to clients at these addresses. */
function socketsOfGateway(...clients: readonly string[]): number {
  const folder = `/proc/${network.processes.get('gateway-1')?.pid()}`
  const open = new Set(
    readdirSync(`${folder}/fd`).map((fd) => {
      try {
        return readlinkSync(`${folder}/fd/${fd}`)
      } catch {
        return '' // it was closed after the folder was read
      }
    }),
  )
  const remotes = new Set(clients.map(hexOf))
  return ['tcp', 'tcp6']
    .flatMap((table) => readFileSync(`${folder}/net/${table}`, 'utf8').split('\n').slice(1, -1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , remote = '', , , , , , , inode]) => {
      const [address = ''] = remote.split(':')
      return remotes.has(address.slice(-8)) && open.has(`socket:[${inode}]`)
    }).length
}

/** An IPv4 address as the kernel prints it: hexadecimal, in the order of a little-endian machine. */
const hexOf = (address: string): string =>
  address
    .split('.')
    .map((byte) => Number(byte).toString(16).padStart(2, '0').toUpperCase())
    .reverse()
    .join('')

/** A client with its own address that never closes its side. */
async function openTcp(localAddress: string, at = port): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: at, localAddress, allowHalfOpen: true })
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))
  return socket
}
async function openTls(localAddress: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({ socket: await openTcp(localAddress), ca: network.caPem, ...options })
  await once(socket, 'secureConnect')
  return socket
}
const ended = (socket: Socket): Promise<unknown> => {
  socket.resume()
  if (socket.destroyed || socket.readableEnded) return Promise.resolve()
  return new Promise((resolve) => socket.once('end', resolve).once('close', resolve))
}
const many = <T>(open: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: LIMIT }, open))

test.runIf(process.platform === 'linux')(
  'clients that say nothing, or half a request, are disconnected, and keep no socket of the gateway',
  async () => {
    const clients = ['127.0.0.11', '127.0.0.12']
    const silent = await many(() => openTcp('127.0.0.11'))
    const half = await many(() => openTls('127.0.0.12'))
    for (const socket of half) socket.write('GET / HTTP/1.1\r\nhost')
    await expect.poll(() => socketsOfGateway(...clients)).toBe(2 * LIMIT)
    const answers = await Promise.all(half.map((socket) => text(socket)))
    expect(answers.every((answer) => answer.startsWith('HTTP/1.1 408 '))).toBe(true)
    await Promise.all(silent.map(ended))
    await expect.poll(() => socketsOfGateway(...clients), { timeout: 60_000 }).toBe(0)
    for (const socket of [...silent, ...half]) socket.destroy()
  },
)

test('a source above its limit is refused before the handshake, and other sources are not affected', async () => {
  const open = await many(() => openTcp('127.0.0.13'))
  await ended(await openTcp('127.0.0.13'))
  ;(await openTls('127.0.0.14')).destroy()
  for (const socket of open) socket.destroy()
})

test('connections at the shared address reach every gateway', async () => {
  const instances = new Set<unknown>()
  const ask = async (): Promise<number> => {
    const agent = new Agent({ ca: network.caPem })
    const [answer] = await once(request(`https://${network.address}/version`, { agent }).end(), 'response')
    instances.add(answer.headers['ziti-instance-id'])
    await text(answer)
    agent.destroy()
    return instances.size
  }
  await expect.poll(ask).toBe(2)
})

test('at the shared address an API session has the address of its client', async () => {
  const agent = new Agent({ ca: network.caPem, localAddress: '127.0.0.15' })
  const url = `https://${network.address.replace('localhost', '127.0.0.1')}/edge/client/v1/authenticate?method=password`
  const body = JSON.stringify({ username: 'admin', password: 'correct horse' })
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const outgoing = request(url, { method: 'POST', agent, headers }).end(body)
  const [answer] = await once(outgoing, 'response')
  expect(await json(answer)).toMatchObject({ data: { ipAddress: '127.0.0.15' } })
  agent.destroy()
})

test('a client that sends a PROXY header itself is refused', async () => {
  const socket = await openTcp('127.0.0.16', Number(network.address.split(':')[1]))
  socket.write('PROXY TCP4 192.0.2.1 127.0.0.1 4096 443\r\n')
  await ended(socket)
  const direct = await openTcp('127.0.0.17')
  direct.write('PROXY TCP4 192.0.2.1 127.0.0.1 4096 443\r\n')
  await ended(direct)
  for (const one of [socket, direct]) one.destroy()
})

test.each(['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])(
  'TLS 1.2 is spoken with %s',
  async (ciphers) => {
    const socket = await openTls('127.0.0.18', { maxVersion: 'TLSv1.2', ciphers })
    expect(socket.getCipher().name).toBe(ciphers)
    socket.destroy()
  },
)

test.each(['AES128-GCM-SHA256', 'AES256-SHA', 'ECDHE-RSA-AES128-SHA', 'ECDHE-RSA-AES256-SHA384'])(
  'TLS 1.2 is not spoken with %s',
  async (suite) => {
    const options = { maxVersion: 'TLSv1.2', ciphers: `${suite}:@SECLEVEL=0` } as const
    await expect(openTls('127.0.0.19', options)).rejects.toThrow()
  },
)
