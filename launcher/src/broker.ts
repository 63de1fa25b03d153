import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import {
  type Command,
  type ConnectOptions,
  commandReader,
  type Message,
  ProtocolError,
} from './nats-protocol.js'
import { isValidSubject, type Subscription, subscriptions } from './subscriptions.js'

export interface BrokerOptions {
  readonly port: number
  readonly password: string // of the user `busUser`
  readonly limits?: Partial<BrokerLimits>
}

/** Far above what the processes of one machine use. A client beyond one of them is cut off. */
export interface BrokerLimits {
  readonly connections: number
  readonly loginMs: number
  readonly subscriptions: number // of one connection
  readonly allSubscriptions: number
  readonly subjectBytes: number
  readonly payloadBytes: number
  readonly pendingBytes: number // that wait for a slow reader
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

const GOODBYE_MS = 1000 // for a client to read why it is cut off; one that does not close is closed

export const busUser = 'overlay'

/** With the password, for settings of processes and never for a command line. */
export const busUrl = (port: number, password: string): string =>
  `nats://${busUser}:${encodeURIComponent(password)}@127.0.0.1:${port}`

export interface Broker extends AsyncDisposable {
  readonly url: string
  stop(): Promise<void>
}

interface Listener extends Subscription {
  readonly sid: string
  readonly client: Client
  delivered: number
  limit: number // 0: none
}

interface Client {
  readonly send: (...parts: (string | Buffer)[]) => void
  readonly listeners: Map<string, Listener>
  options: ConnectOptions
  isAdmitted: boolean
}

/** The NATS core protocol on the loopback interface: for one machine and for tests, where no nats-server is at hand. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { port, password } = options
  const limits = { ...busLimits, ...options.limits }
  const sockets = new Set<Socket>()
  const known = subscriptions<Listener>()
  const info = {
    server_id: randomUUID(),
    server_name: 'built-in',
    version: '2.9.0',
    proto: 1,
    host: '127.0.0.1',
    port,
    headers: true,
    auth_required: true,
    max_payload: limits.payloadBytes,
  }

  const server = createServer({ noDelay: true }, (socket) => {
    const client: Client = {
      send: sender(socket, limits.pendingBytes),
      listeners: new Map(),
      options: { verbose: true },
      isAdmitted: false,
    }
    const commands = commandReader(() => (client.isAdmitted ? limits.payloadBytes : 0))
    const late = setTimeout(() => {
      if (!client.isAdmitted) socket.destroy()
    }, limits.loginMs)
    sockets.add(socket)
    socket.on('data', (chunk) => {
      try {
        for (const command of commands(chunk)) client.send(obey(admitted(command, client), client))
      } catch (err) {
        if (!(err instanceof ProtocolError)) throw err
        socket.end(`-ERR '${err.message}'\r\n`)
        socket.removeAllListeners('data').resume()
        setTimeout(() => socket.destroy(), GOODBYE_MS).unref()
      }
    })
    socket.on('error', () => socket.destroy()) // a client that went away; `close` follows
    socket.on('close', () => {
      clearTimeout(late)
      sockets.delete(socket)
      for (const listener of client.listeners.values()) known.remove(listener)
    })
    client.send(`INFO ${JSON.stringify(info)}\r\n`)
  })

  server.maxConnections = limits.connections

  /** The command, from a client that has logged in or does so with it. */
  const admitted = (command: Command, client: Client): Command => {
    if (command.op === 'connect') {
      const { user, pass } = command.options
      client.isAdmitted = user === busUser && isSame(pass, password)
    }
    if (!client.isAdmitted) throw new ProtocolError('Authorization Violation')
    return command
  }

  const forget = (listener: Listener): void => {
    known.remove(listener)
    listener.client.listeners.delete(listener.sid)
  }

  /** Does what the client says; returns what it hears back. */
  const obey = (command: Command, client: Client): string => {
    const done = client.options.verbose ? '+OK\r\n' : ''
    switch (command.op) {
      case 'ping':
        return 'PONG\r\n'
      case 'pong':
        return ''
      case 'connect':
        client.options = command.options
        return command.options.verbose ? '+OK\r\n' : ''
      case 'publish':
        publish(command.message, client)
        return done
      case 'subscribe': {
        const { subject, queue, sid } = command
        if (!isValidSubject(subject)) return "-ERR 'Invalid Subject'\r\n"
        if (client.listeners.has(sid)) return done
        if (client.listeners.size >= limits.subscriptions || known.size() >= limits.allSubscriptions)
          throw new ProtocolError('maximum subscriptions exceeded')
        if (subject.length > limits.subjectBytes || sid.length > limits.subjectBytes)
          throw new ProtocolError('maximum subject length exceeded')
        const listener = { subject, ...(queue && { queue }), sid, client, delivered: 0, limit: 0 }
        client.listeners.set(sid, listener)
        known.add(listener)
        return done
      }
      case 'unsubscribe': {
        const listener = client.listeners.get(command.sid)
        if (!listener) return done
        listener.limit = command.afterMessages ?? 0
        if (listener.delivered >= listener.limit) forget(listener)
        return done
      }
    }
  }

  const publish = (message: Message, from: Client): void => {
    const { echo, no_responders } = from.options
    const reached = known.reached(message.subject).filter(({ client }) => client !== from || echo !== false)
    for (const listener of reached) deliver(message, listener)
    if (reached.length > 0 || !message.reply || !no_responders) return
    for (const listener of known.reached(message.reply)) deliver(nobodyThere(message.reply), listener)
  }

  const deliver = ({ subject, reply, headerBytes, payload }: Message, listener: Listener): void => {
    const { client, sid } = listener
    const to = reply ? `${subject} ${sid} ${reply}` : `${subject} ${sid}`
    if (headerBytes > 0 && client.options.headers) {
      client.send(`HMSG ${to} ${headerBytes} ${payload.length}\r\n`, payload, '\r\n')
    } else {
      const body = payload.subarray(headerBytes)
      client.send(`MSG ${to} ${body.length}\r\n`, body, '\r\n')
    }
    listener.delivered += 1
    if (listener.limit > 0 && listener.delivered >= listener.limit) forget(listener)
  }

  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroySoon()
    const late = setTimeout(() => {
      for (const socket of sockets) socket.destroy() // who does not read does not hear of the end
    }, 1000)
    await new Promise((resolve) => server.close(resolve))
    clearTimeout(late)
  }
  return { url: busUrl(port, password), stop, [Symbol.asyncDispose]: stop }
}

/** Takes the same time wherever they differ. */
function isSame(given: unknown, expected: string): boolean {
  const [a, b] = [String(given), expected].map((text) => createHash('sha256').update(text).digest())
  return a !== undefined && b !== undefined && timingSafeEqual(a, b)
}

/** Tells who asks that nobody is there to answer. */
function nobodyThere(subject: string): Message {
  const payload = Buffer.from('NATS/1.0 503\r\n\r\n')
  return { subject, headerBytes: payload.length, payload }
}

/** Gathers what one turn of the event loop has for a client, and cuts off who does not read. */
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
    // it will not read that either: what it has not taken by now is dropped
    setImmediate(() => socket.destroy())
  }
}
