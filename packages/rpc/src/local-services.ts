import type { Admission } from './check-caller.js'
import type { ServiceHost } from './host.js'
import type { PeerName } from './peer-name.js'

/** A service of this process, as `serve` hosts it. */
export interface HostedLocally extends Pick<ServiceHost, 'methods' | 'streams' | 'stopping'> {
  readonly admission: Admission
  /** At which other processes call it: `host:port` or `unix:/path`. */
  readonly address: string
}

export interface LocalService extends HostedLocally {
  /** Counts a call until its answer. */
  track<T>(answer: Promise<T>): Promise<T>
}

/** The services of one process, which call each other without a connection. */
export interface LocalServices {
  /** Returns a function that withdraws the service. It resolves when all running calls are answered. */
  offer(service: HostedLocally): () => Promise<void>
  /** Undefined: it is not served yet, or no longer. */
  find(name: PeerName): LocalService | undefined
  /** At which the service was served last. */
  addressOf(name: PeerName): string | undefined
  /** Undefined, or resolves when it is served for the first time. */
  awaited(name: PeerName): Promise<void> | undefined
}

export function openLocalServices(): LocalServices {
  const offered = new Map<PeerName, LocalService>()
  const served = new Map<PeerName, string>() // addresses
  const waiting = new Map<PeerName, PromiseWithResolvers<void>>()
  return {
    offer(service) {
      const { host } = service.admission
      let running = 0
      let isWithdrawn = false
      const idle = Promise.withResolvers<void>()
      const own: LocalService = {
        ...service,
        track(answer) {
          running++
          return answer.finally(() => {
            if (--running === 0 && isWithdrawn) idle.resolve()
          })
        },
      }
      offered.set(host, own)
      served.set(host, service.address)
      waiting.get(host)?.resolve()
      return () => {
        isWithdrawn = true
        if (offered.get(host) === own) offered.delete(host)
        if (running === 0) idle.resolve()
        return idle.promise
      }
    },
    find: (name) => offered.get(name),
    addressOf: (name) => served.get(name),
    awaited(name) {
      if (served.has(name)) return undefined
      const entry = waiting.get(name) ?? Promise.withResolvers<void>()
      waiting.set(name, entry)
      return entry.promise
    },
  }
}
