import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { BROKER_CLOSE_MS } from '../limits.js'
import { type Command, commandReader, type Message, ProtocolError } from './nats-protocol.js'
import { isValidSubject, type Subscription, subscriptions } from './subscriptions.js'
import { openTlsUpgrade } from './tls-upgrade.js'

export interface BrokerOptions {
  readonly port: number
  readonly password: string // of the user `busUser`
  /** Directory of the server's certificate and of the authorities of clients. Absent: no TLS; for tests. */
  readonly tls?: string
  readonly limits?: Partial<BrokerLimits>
}

/** Far above what the processes of one machine use. The broker closes a connection that exceeds one. */
export interface BrokerLimits {
  readonly connections: number
  readonly loginMs: number
  readonly subscriptions: number // of one connection
  readonly allSubscriptions: number
  readonly subjectBytes: number
  readonly payloadBytes: number
  readonly pendingBytes: number // unsent, for one connection
}

export const busLimits: BrokerLimits = {
  connections: 512,
  loginMs: 5000,
  subscriptions: 1000,
  allSubscriptions: 10_000,
  subjectBytes: 512,
  payloadBytes: 1024 * 1024,
  pendingBytes: 8 * 1024 * 1024,
}

export const busUser = 'overlay'

/** With the password, for settings of processes and never for a command line. */
export const busUrl = (port: number, password: string): string =>
  `nats://${busUser}:${encodeURIComponent(password)}@127.0.0.1:${port}`

export interface Broker extends AsyncDisposable {
  readonly url: string
  /** New connections use the present files of the directory. */
  reload(): void
  stop(): Promise<void>
}

interface ClientSubscription extends Subscription {
  readonly sid: string
  readonly client: Client
}

interface Client {
  readonly send: (...parts: (string | Buffer)[]) => void
  readonly subscriptions: Map<string, ClientSubscription> // by sid
  isAdmitted: boolean
}

/** Publish and subscribe of the NATS core protocol, on the loopback interface: for one machine and for tests. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { port, password, tls } = options
  const limits = { ...busLimits, ...options.limits }
  const connections = new Set<Socket>()
  const clients = new Set<Socket>() // behind TLS, where there is TLS
  const all = subscriptions<ClientSubscription>()
  const info = {
    server_id: randomUUID(),
    server_name: 'built-in',
    version: '2.9.0',
    proto: 1,
    host: '127.0.0.1',
    port,
    headers: false,
    auth_required: true,
    ...(tls !== undefined && { tls_required: true, tls_verify: true }),
    max_payload: limits.payloadBytes,
  }

  const server = createServer({ noDelay: true }, (socket) => {
    connections.add(socket)
    socket.on('error', () => socket.destroy()) // the connection is lost; `close` follows
    socket.on('close', () => connections.delete(socket))
    // wire: the first line precedes TLS
    socket.write(`INFO ${JSON.stringify(info)}\r\n`, (err) => {
      if (!err) upgrade ? upgrade.start(socket) : serve(socket)
    })
  })

  const serve = (socket: Socket): void => {
    clients.add(socket)
    const client: Client = {
      send: sender(socket, limits.pendingBytes),
      subscriptions: new Map(),
      isAdmitted: false,
    }
    const commands = commandReader(() => (client.isAdmitted ? limits.payloadBytes : 0))
    const loginTimer = setTimeout(() => {
      if (!client.isAdmitted) socket.destroy()
    }, limits.loginMs)
    socket.on('data', (chunk) => {
      try {
        for (const command of commands(chunk)) run(command, client)
      } catch (err) {
        if (!(err instanceof ProtocolError)) throw err
        socket.end(`-ERR '${err.message}'\r\n`)
        socket.removeAllListeners('data').resume()
        setTimeout(() => socket.destroy(), BROKER_CLOSE_MS).unref()
      }
    })
    socket.on('error', () => socket.destroy()) // the connection is lost; `close` follows
    socket.on('close', () => {
      clearTimeout(loginTimer)
      clients.delete(socket)
      for (const subscription of client.subscriptions.values()) all.remove(subscription)
    })
  }
  const upgrade = tls === undefined ? undefined : openTlsUpgrade(tls, limits.loginMs, serve)

  server.maxConnections = limits.connections

  const run = (command: Command, client: Client): void => {
    if (command.op === 'connect') {
      const { user, pass } = command.options
      client.isAdmitted = user === busUser && isSame(pass, password)
    }
    if (!client.isAdmitted) throw new ProtocolError('Authorization Violation')
    if (command.op === 'ping') client.send('PONG\r\n')
    if (command.op === 'publish') publish(command.message)
    if (command.op === 'subscribe') subscribe(command, client)
    if (command.op === 'unsubscribe') unsubscribe(command.sid, client)
  }

  const subscribe = ({ subject, sid }: { subject: string; sid: string }, client: Client): void => {
    if (!isValidSubject(subject)) {
      client.send("-ERR 'Invalid Subject'\r\n")
      return
    }
    if (client.subscriptions.has(sid)) return
    if (client.subscriptions.size >= limits.subscriptions || all.size() >= limits.allSubscriptions)
      throw new ProtocolError('maximum subscriptions exceeded')
    if (subject.length > limits.subjectBytes || sid.length > limits.subjectBytes)
      throw new ProtocolError('maximum subject length exceeded')
    const subscription = { subject, sid, client }
    client.subscriptions.set(sid, subscription)
    all.add(subscription)
  }

  const unsubscribe = (sid: string, client: Client): void => {
    const subscription = client.subscriptions.get(sid)
    if (!subscription) return
    client.subscriptions.delete(sid)
    all.remove(subscription)
  }

  const publish = ({ subject, payload }: Message): void => {
    for (const { client, sid } of all.matching(subject))
      client.send(`MSG ${subject} ${sid} ${payload.length}\r\n`, payload, '\r\n')
  }

  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    for (const socket of clients) socket.destroySoon()
    const late = setTimeout(() => {
      for (const socket of connections) socket.destroy() // clients that do not read
    }, BROKER_CLOSE_MS)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(late)
  }
  const reload = (): void => upgrade?.reload()
  return { url: busUrl(port, password), reload, stop, [Symbol.asyncDispose]: stop }
}

/** Compares in constant time. */
function isSame(actual: unknown, expected: string): boolean {
  const [a, b] = [String(actual), expected].map((text) => createHash('sha256').update(text).digest())
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}

/** Writes once per turn of the event loop. Closes the connection of a client that does not read. */
function sender(socket: Socket, pendingBytes: number): Client['send'] {
  let corked = false
  return (...parts) => {
    if (socket.writableEnded || socket.destroyed) return
    if (!corked) {
      corked = true
      socket.cork()
      setImmediate(() => {
        corked = false
        socket.uncork()
      })
    }
    for (const part of parts) if (part.length > 0) socket.write(part)
    if (socket.writableLength <= pendingBytes) return
    socket.end("-ERR 'Slow Consumer'\r\n")
    // the client does not read this either
    setImmediate(() => socket.destroy())
  }
}
