import { setTimeout as delay } from 'node:timers/promises'
import { type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node'
import type { Logger } from 'pino'
import { metrics } from '../process/metrics.js'

/** Hints between replicas, over NATS core. Never the truth: what is published while the bus is away is lost. */
export interface Bus extends AsyncDisposable {
  /** Never throws. */
  publish(subject: string, message: object): void
  /** Survives reconnects. `*` and `>` as in NATS. */
  subscribe(subject: string, handler: (message: unknown, subject: string) => void): Disposable
  connected(): boolean
  /** Told whenever the connection comes or goes. What was missed meanwhile has to be looked for. */
  onChange(listener: (connected: boolean) => void): Disposable
}

interface Subscriber {
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => void
  stop: () => void
}

const FIRST_CONNECT_MS = 1000
const PAUSE_MS = 250
const LONGEST_PAUSE_MS = 2000

/** Returns when the bus is there, or when it has not been for a second: then it goes on trying for ever. */
export async function openBus(urls: string, log: Logger): Promise<Bus> {
  const options = optionsOf(urls)
  const stop = new AbortController()
  const subscribers = new Set<Subscriber>()
  const listeners = new Set<(connected: boolean) => void>()
  let nats: NatsConnection | undefined
  let connected = false

  const attach = (connection: NatsConnection, subscriber: Subscriber): void => {
    const { subject, handler } = subscriber
    const subscription = connection.subscribe(subject, {
      callback(err, message) {
        try {
          if (err) throw err
          handler(message.json(), message.subject)
        } catch (failure) {
          log.error({ err: failure, subject }, 'message of the bus not handled')
        }
      },
    })
    subscriber.stop = () => subscription.unsubscribe()
  }

  const changed = (now: boolean): void => {
    connected = now
    metrics.busConnected.set(now ? 1 : 0)
    for (const listener of listeners) {
      try {
        listener(now)
      } catch (err) {
        log.error({ err }, 'change of the bus not handled')
      }
    }
  }

  const { promise: first, resolve: firstDone } = deferred()
  const running = (async () => {
    let pause = PAUSE_MS
    while (!stop.signal.aborted) {
      try {
        const connection = await connect(options)
        nats = connection
        for (const subscriber of subscribers) attach(connection, subscriber)
        await connection.flush() // a hint that is published from now on reaches us
        if (stop.signal.aborted) return await connection.close()
        changed(true)
        log.info({ server: connection.getServer() }, 'bus connected')
        pause = PAUSE_MS
        firstDone()
        const err = await connection.closed()
        changed(false)
        if (!stop.signal.aborted) log.warn({ err }, 'bus lost')
      } catch (err) {
        log.debug({ err }, 'bus not reached')
      }
      await delay(pause, undefined, { signal: stop.signal }).catch(() => undefined)
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
  })()

  const patience = setTimeout(() => {
    log.warn('bus not reached yet: going on without it')
    firstDone()
  }, FIRST_CONNECT_MS)
  await first
  clearTimeout(patience)

  return {
    publish(subject, message) {
      try {
        if (!nats || !connected) throw new Error('bus is away')
        nats.publish(subject, JSON.stringify(message))
      } catch {
        metrics.busDropped.inc() // the reader finds out by itself, later
      }
    },
    subscribe(subject, handler) {
      const subscriber: Subscriber = { subject, handler, stop: () => undefined }
      subscribers.add(subscriber)
      if (nats && !nats.isClosed()) attach(nats, subscriber)
      return {
        [Symbol.dispose]() {
          subscribers.delete(subscriber)
          subscriber.stop()
        },
      }
    },
    connected: () => connected,
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      stop.abort()
      await nats?.drain().catch(() => undefined) // lost meanwhile: nothing left to deliver
      await running
    },
  }
}

/** One connection, without the client's own reconnecting: `openBus` begins anew, the first time and every other. */
function optionsOf(urls: string): ConnectionOptions {
  const parsed = urls.split(',').map((url) => new URL(url.trim()))
  const [{ username, password, protocol } = new URL('nats://localhost')] = parsed
  const credentials =
    password !== ''
      ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
      : username !== '' && { token: decodeURIComponent(username) }
  return {
    servers: parsed.map(({ host }) => host),
    reconnect: false,
    timeout: 2000,
    pingInterval: 1000, // a server that vanished or hangs is noticed in 3 s
    maxPingOut: 2,
    ...credentials,
    ...(protocol === 'tls:' && { tls: {} }),
  }
}

function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
