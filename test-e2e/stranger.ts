import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { type ChannelCredentials, Client, type ClientOptions, credentials, status } from '@grpc/grpc-js'

/** Where a stranger connects: an address of TCP, or the path of a socket. */
export type Target = { readonly host: string; readonly port: number } | { readonly path: string }

export interface Stranger {
  /** A certificate that none of our authorities has issued. */
  readonly cert: string
  readonly key: string
}

/** Longer than every limit of a handshake or login that SECURITY.md states. */
const LIMIT_MS = 30_000

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
const http = 'GET /edge/management/v1/identities HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'
const nats = 'CONNECT {"verbose":false,"pedantic":false}\r\nSUB > 1\r\nPING\r\n'

export interface ProbeOptions extends Stranger {
  /** NATS greets in plain text before TLS begins. */
  readonly isNats?: boolean
}

/** What a stranger who tries each protocol gets, in a few words. */
export async function probe(
  target: Target,
  { isNats = false, ...stranger }: ProbeOptions,
): Promise<Record<string, string>> {
  const results = {
    bytes: plain(target, 'hello\r\n\r\n'),
    http: plain(target, http),
    http2: plain(
      target,
      Buffer.concat([Buffer.from(preface), Buffer.from('000000040000000000', 'hex')]),
      'HTTP/2',
    ),
    nats: plain(target, nats),
    postgres: plain(target, startup),
    tls: tls(target, {}),
    tlsOther: tls(target, stranger),
    ...(isNats && { natsTls: natsTls(target, {}), natsTlsOther: natsTls(target, stranger) }),
    grpc: grpc(target, credentials.createInsecure()),
    grpcTls: grpc(target, anyServer(undefined)),
    grpcTlsOther: grpc(target, anyServer(stranger)),
  }
  const entries = Object.entries(results).map(async ([name, result]) => [name, await result] as const)
  return Object.fromEntries(await Promise.all(entries))
}

const plain = (target: Target, bytes: string | Buffer, awaited?: string): Promise<string> => {
  const socket = connectPlain(target, () => void socket.write(bytes))
  return firstAnswer(socket, awaited)
}

const tls = (target: Target, certificate: Partial<Stranger>): Promise<string> => {
  const options = {
    ...target,
    ...certificate,
    servername: 'localhost',
    rejectUnauthorized: false,
    ALPNProtocols: ['http/1.1', 'h2'],
  }
  const socket = connectTls(options, () => void socket.write(http))
  return firstAnswer(socket)
}

/** TLS after the greeting. */
async function natsTls(target: Target, certificate: Partial<Stranger>): Promise<string> {
  const plain = connectPlain(target)
  plain.on('error', () => undefined)
  await once(plain, 'data')
  const socket = connectTls({ socket: plain, ...certificate, rejectUnauthorized: false }, () => {
    socket.write(nats)
  })
  return firstAnswer(socket)
}

/** The first bytes that the server sends, or that it closes the connection. Its greeting is not an answer. */
function firstAnswer(socket: Duplex, awaited?: string): Promise<string> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    const end = (text: string): void => {
      clearTimeout(late)
      socket.destroy()
      resolve(text)
    }
    const late = setTimeout(() => end(`no answer: ${describe(received)}`), LIMIT_MS)
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes])
      const text = describe(received)
      if (text === awaited || !isGreeting(received)) end(text)
    })
    socket.on('error', () => undefined) // 'close' follows
    socket.on('close', () => end(isGreeting(received) ? 'closed' : describe(received)))
  })
}

/** Bytes that a server sends before it reads any. */
const isGreeting = (bytes: Buffer): boolean =>
  bytes[3] === SETTINGS || /^INFO [^\r]*(\r\n)?$/.test(bytes.toString('latin1'))

const SETTINGS = 4 // the type of a frame of HTTP/2

function describe(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  const [, http] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? []
  const [, error] = /-ERR '([^']+)'/.exec(text) ?? []
  if (bytes.length === 0) return 'closed'
  if (http) return `HTTP ${http}`
  if (error) return 'closed' // by NATS, after it has said why
  if (bytes[0] === 0x15 && bytes[1] === 0x03) return 'closed' // alert of TLS
  if (bytes[3] === SETTINGS) return 'HTTP/2'
  if (text.startsWith('R') && bytes.readUInt32BE(5) === 10) return 'Postgres asks for a password'
  if (text.startsWith('E') && text.includes('FATAL')) return 'Postgres refuses'
  return `unexpected: ${text.slice(0, 200)}`
}

const startup = (() => {
  const body = Buffer.from('\0\x03\0\0user\0postgres\0database\0overlay\0\0', 'latin1')
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return Buffer.concat([length, body])
})()

const anyServer = (stranger: Stranger | undefined) =>
  credentials.createSsl(
    null,
    stranger ? Buffer.from(stranger.key) : null,
    stranger ? Buffer.from(stranger.cert) : null,
    { rejectUnauthorized: false, checkServerIdentity: () => undefined },
  )

/** The status of a call of each kind; one if they are equal. */
async function grpc(target: Target, channel: ChannelCredentials): Promise<string> {
  using calls = openCalls('path' in target ? `unix:${target.path}` : `${target.host}:${target.port}`, channel)
  const { call } = calls
  const health = await call('/grpc.health.v1.Health/Check')
  const others = await Promise.all([
    call(REFLECTION, LIST_SERVICES),
    call('/overlay.sessions.v1.SessionsService/Inspect'),
  ])
  const [first = '', ...rest] = [...new Set([health, ...others])]
  return rest.length === 0 ? first : `health ${first}, else ${rest.join(' ')}`
}

export const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
export const LIST_SERVICES = Buffer.from('3a00', 'hex')

export interface Calls extends Disposable {
  /** The name of the status of a call, and the messages that it answers. */
  readonly call: (path: string, request?: Buffer, messages?: Buffer[]) => Promise<string>
}

/** Calls of encoded messages. */
export function openCalls(address: string, channel: ChannelCredentials, options: ClientOptions = {}): Calls {
  const client = new Client(address, channel, { 'grpc.enable_retries': 0, ...options })
  const raw = (bytes: Buffer): Buffer => bytes
  return {
    call: (path, request = Buffer.alloc(0), messages = []) =>
      new Promise((resolve) => {
        const stream = client.makeBidiStreamRequest(path, raw, raw, { deadline: Date.now() + LIMIT_MS })
        stream.on('data', (message: Buffer) => messages.push(message))
        stream.on('error', () => undefined) // 'status' follows
        stream.on('status', ({ code }) => resolve(status[code]))
        stream.end(request)
      }),
    [Symbol.dispose]: () => client.close(),
  }
}
