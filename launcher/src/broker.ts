import { randomUUID } from 'node:crypto'
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
  readonly maxPayload?: number
  readonly maxPending?: number // bytes that wait for a slow reader before it is cut off
}

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
}

/** The NATS core protocol on the loopback interface: for one machine and for tests, where no nats-server is at hand. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const { port, maxPayload = 1024 * 1024, maxPending = 64 * 1024 * 1024 } = options
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
    max_payload: maxPayload,
  }

  const server = createServer({ noDelay: true }, (socket) => {
    const client: Client = {
      send: sender(socket, maxPending),
      listeners: new Map(),
      options: { verbose: true },
    }
    const commands = commandReader(maxPayload)
    sockets.add(socket)
    socket.on('data', (chunk) => {
      try {
        for (const command of commands(chunk)) client.send(obey(command, client))
      } catch (err) {
        if (!(err instanceof ProtocolError)) throw err
        socket.end(`-ERR '${err.message}'\r\n`)
        socket.removeAllListeners('data').resume()
      }
    })
    socket.on('error', () => socket.destroy()) // a client that went away; `close` follows
    socket.on('close', () => {
      sockets.delete(socket)
      for (const listener of client.listeners.values()) known.remove(listener)
    })
    client.send(`INFO ${JSON.stringify(info)}\r\n`)
  })

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
  return { url: `nats://127.0.0.1:${port}`, stop, [Symbol.asyncDispose]: stop }
}

/** Tells who asks that nobody is there to answer. */
function nobodyThere(subject: string): Message {
  const payload = Buffer.from('NATS/1.0 503\r\n\r\n')
  return { subject, headerBytes: payload.length, payload }
}

/** Gathers what one turn of the event loop has for a client, and cuts off who does not read. */
function sender(socket: Socket, maxPending: number): Client['send'] {
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
    if (socket.writableLength <= maxPending) return
    socket.end("-ERR 'Slow Consumer'\r\n")
    // it will not read that either: what it has not taken by now is dropped
    setImmediate(() => socket.destroy())
  }
}
