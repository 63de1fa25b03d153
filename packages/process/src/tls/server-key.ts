import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { type Context, Fault, ownContext, type Positions } from '@overlay/rpc'
import { coalesced } from '../async/serial.js'
import { SERVER_KEY_MS, SERVER_KEY_PAUSE_MS, SERVER_KEY_POLL_MS } from '../limits.js'

/** The key and the certificate of a TLS server, leaf first. */
export interface ServerKey {
  readonly keyPem: string
  readonly chainPem: string
}

/** Asks pki for a key. */
export type FetchKey<Key extends ServerKey> = (context: Context) => Promise<Key>

interface Log {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/** Waits for pki: the process cannot serve without its key. Fails when the signal is aborted. */
export async function serverKey<Key extends ServerKey>(
  fetch: FetchKey<Key>,
  log: Log,
  signal?: AbortSignal,
): Promise<Key> {
  for (let isLogged = false; ; isLogged = true) {
    try {
      return await fetch(limited())
    } catch (err) {
      if (!(err instanceof Fault)) throw err
      if (!isLogged) log.warn({ err }, 'no server certificate yet, waiting for pki')
      await delay(SERVER_KEY_PAUSE_MS, undefined, signal && { signal })
    }
  }
}

/** Follows the key of a server. */
export interface KeyFollower extends Disposable {
  /** The key may have changed. @param positions the changes that the answer of pki must contain */
  reload(positions: Positions): void
}

/** Asks pki for a new certificate at each `reload`, and every minute: certificates expire, and keys are replaced. */
export function renewServerKey<Key extends ServerKey>(
  fetch: FetchKey<Key>,
  log: Log,
  first: Key,
  renew: (key: Key) => void,
): KeyFollower {
  let current = first
  let seen: Positions = {}
  const poll = coalesced(async (): Promise<void> => {
    try {
      const key = await fetch({ ...limited(), positions: seen })
      if (isDeepStrictEqual(key, current)) return
      renew(key)
      current = key
      log.info({}, 'server certificate renewed')
    } catch (err) {
      log.warn({ err }, 'server certificate could not be looked up, going on with the last one')
    }
  })
  const timer = setInterval(() => void poll(), SERVER_KEY_POLL_MS)
  return {
    reload(positions) {
      seen = positions
      void poll()
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

const limited = (): Context => ownContext(AbortSignal.timeout(SERVER_KEY_MS))
