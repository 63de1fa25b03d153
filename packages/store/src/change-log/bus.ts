import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { type ConnectionOptions, connect, type NatsConnection } from '@nats-io/transport-node'
import { buses, metrics } from '@overlay/process'
import { clientContext } from '@overlay/process/client-tls'
import type { Logger } from 'pino'
import { BUS_CONNECT_MS, BUS_DIAL_MS, BUS_PING_MS, BUS_RECONNECT_MS } from '../limits.js'

/** Notifications between replicas, over NATS core. They are lost while the bus is unavailable: nothing may depend on one. */
export interface Bus extends AsyncDisposable {
  /** Never throws. */
  publish(subject: string, message: object): void
  /** Survives reconnects. `*` and `>` as in NATS. */
  subscribe(subject: string, handler: (message: unknown, subject: string) => void): Disposable
  connected(): boolean
  /** Runs on each connect and disconnect. Notifications in between are lost: listeners read again. */
  onChange(listener: (connected: boolean) => void): Disposable
}

interface Subscriber {
  readonly subject: string
  readonly handler: (message: unknown, subject: string) => void
  unsubscribe: () => void
}

export interface BusOptions {
  /**
   * Directory with `ca.crt`, and `tls.crt` with `tls.key` if the servers require a certificate. Each new connection reads
   * the present files, and requires TLS. Absent: as the servers require, with the public authorities.
   */
  readonly tls?: string | undefined
}

/**
 * Returns once connected, or after a second without a connection. The client reconnects for ever in both cases. Fails if
 * the files of `tls` are unusable.
 */
export async function openBus(urls: string, log: Logger, { tls }: BusOptions = {}): Promise<Bus> {
  const options = optionsOf(urls, tls, log)
  const subscribers = new Set<Subscriber>()
  const listeners = new Set<(connected: boolean) => void>()
  let nats: NatsConnection | undefined
  let connected = false
  let stopped = false

  function publish(subject: string, message: object): void {
    try {
      if (!nats || !connected) throw new Error('bus is unavailable')
      nats.publish(subject, JSON.stringify(message))
    } catch {
      metrics.busDropped.inc() // readers find the change when they next poll
    }
  }

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
    subscriber.unsubscribe = () => subscription.unsubscribe()
  }

  const setConnected = (now: boolean): void => {
    if (now === connected) return
    connected = now
    for (const listener of listeners) {
      try {
        listener(now)
      } catch (err) {
        log.error({ err }, 'change of the bus not handled')
      }
    }
  }

  const nextDelay = (): number => {
    if (stopped) throw new Error('bus closed') // ends the attempts before the first connection
    return BUS_RECONNECT_MS * (1 + Math.random())
  }

  const firstConnection = new AbortController()
  const run = async (): Promise<void> => {
    const connection = await connect({ ...options, reconnectDelayHandler: nextDelay })
    if (stopped) return connection.close()
    nats = connection
    const onConnected = async (): Promise<void> => {
      await connection.flush() // the server has the subscriptions: a notification published from now on arrives
      setConnected(true)
      log.info({ server: connection.getServer() }, 'bus connected')
      firstConnection.abort()
    }
    const statuses = connection.status()
    for (const subscriber of subscribers) attach(connection, subscriber)
    onConnected().catch(() => undefined) // lost again: `reconnect` follows
    for await (const status of statuses) {
      if (status.type === 'reconnect') onConnected().catch(() => undefined)
      if (status.type === 'error') log.warn({ err: status.error }, 'bus reported an error')
      if (status.type !== 'disconnect' || !connected) continue
      setConnected(false)
      log.warn({ server: status.server }, 'bus lost')
    }
    setConnected(false)
  }
  const running = run().catch((err: unknown) => log.debug({ err }, 'bus never connected'))
  const counted = { connected: () => connected }
  buses.add(counted)

  await delay(BUS_CONNECT_MS, undefined, { signal: firstConnection.signal }).then(
    () => log.warn('bus not reached yet: going on without it'),
    () => undefined,
  )

  return {
    publish,
    subscribe(subject, handler) {
      const subscriber: Subscriber = { subject, handler, unsubscribe: () => undefined }
      subscribers.add(subscriber)
      if (nats && !nats.isClosed()) attach(nats, subscriber)
      return {
        [Symbol.dispose]() {
          subscribers.delete(subscriber)
          subscriber.unsubscribe()
        },
      }
    },
    connected: () => connected,
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    async [Symbol.asyncDispose]() {
      stopped = true
      // lost meanwhile: nothing left to deliver, and the drain may never end
      if (nats && connected) await Promise.race([nats.drain(), nats.closed()]).catch(() => undefined)
      await nats?.close()
      await running
      buses.delete(counted)
    },
  }
}

/** For commands that run before the services. Followers need no notifications. */
export const noBus: Bus = {
  publish: () => undefined,
  subscribe: () => ({ [Symbol.dispose]: () => undefined }),
  connected: () => false,
  onChange: () => ({ [Symbol.dispose]: () => undefined }),
  [Symbol.asyncDispose]: async () => undefined,
}

/** Connects once. Throws if no server admits the client. */
export async function probeBus(urls: string, { tls }: BusOptions = {}): Promise<void> {
  const connection = await connect({ ...optionsOf(urls, tls), waitOnFirstConnect: false, reconnect: false })
  await connection.close()
}

function optionsOf(urls: string, tls: string | undefined, log?: Logger): ConnectionOptions {
  const parsed = urls.split(',').map((url) => new URL(url.trim()))
  const [{ username, password, protocol } = new URL('nats://localhost')] = parsed
  const credentials =
    password !== ''
      ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
      : username !== '' && { token: decodeURIComponent(username) }
  const isRequired = protocol === 'tls:' || tls !== undefined
  return {
    servers: parsed.map(({ host }) => host),
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true, // a password may be corrected at the server
    timeout: BUS_DIAL_MS,
    pingInterval: BUS_PING_MS,
    maxPingOut: 1,
    ...credentials,
    ...(isRequired && { tls: tlsOptions(hostsOf(parsed), tls, log) }),
  }
}

const hostsOf = (urls: readonly URL[]): readonly string[] =>
  urls.map(({ hostname }) => hostname.replace(/^\[(.*)\]$/, '$1'))

/** The client copies the members for each connection. */
function tlsOptions(hosts: readonly string[], directory: string | undefined, log?: Logger): object {
  const context = () => clientContext({ peer: 'bus', directory }, log)
  context() // unusable files are an error now
  const addresses = hosts.filter((host) => isIP(host) !== 0)
  return {
    get secureContext() {
      return context()
    },
    // the client passes no host where it connects to an IP address, and TLS takes localhost instead
    checkServerIdentity(host: string, certificate: PeerCertificate) {
      const candidates = hosts.includes(host) || addresses.length === 0 ? [host] : addresses
      const problems = candidates.map((candidate) => checkServerIdentity(candidate, certificate))
      return problems.includes(undefined) ? undefined : problems[0]
    },
  }
}
