import { lookup } from 'node:dns/promises'
import { expireAfter } from './deadlines.js'
import { EMPTY_LOOK_UP_PAUSE_MS, LOOK_UP_LIMIT_MS, LOOK_UP_PAUSE_MS } from './limits.js'
import { addressOf } from './unix-socket.js'

/** Resolves the name of a host to all its addresses. */
export type LookUp = (host: string) => Promise<readonly string[]>

/** The addresses of the replicas of one service. */
export interface Addresses extends Disposable {
  /** Whether a look-up may change them. */
  readonly hasNames: boolean
  current(): readonly string[]
  /** Looks all names up. Resolves at the end of a look-up that began after the call, successful or not. */
  lookUp(): Promise<void>
  /** The time since the last look-up. */
  ageMs(): number
}

export interface AddressesOptions {
  readonly lookUp: LookUp
  /** The addresses are others than before. */
  changed(): void
  failed(err: unknown): void
  /** All names were found. */
  succeeded(): void
}

const DNS = 'dns:'

/** By the resolver of the system, which knows its hosts file and its search domains. */
export const systemLookUp: LookUp = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address)

/**
 * Addresses separated by commas: `host:port`, `unix:/path`, or `dns:host:port` for all addresses of a name. A name whose
 * look-up fails, or finds nothing, keeps the addresses that it had.
 */
export function openAddresses(
  list: string,
  { lookUp, changed, failed, succeeded }: AddressesOptions,
): Addresses {
  const entries = list.split(',').map((entry) => entry.trim())
  const names = entries.filter((entry) => entry.startsWith(DNS))
  const found = new Map<string, readonly string[]>()
  const resolve = (): readonly string[] => [
    ...new Set(entries.flatMap((entry) => (entry.startsWith(DNS) ? (found.get(entry) ?? []) : [entry]))),
  ]
  let current = resolve()
  let isClosed = false
  let endedAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  async function lookUpName(entry: string): Promise<boolean> {
    try {
      const addresses = await within(LOOK_UP_LIMIT_MS, () => replicasOf(entry.slice(DNS.length), lookUp))
      if (addresses.length === 0) throw new Error(`${entry} has no addresses`)
      found.set(entry, addresses)
      return true
    } catch (err) {
      if (!isClosed) failed(err)
      return false
    }
  }
  async function lookUpAll(): Promise<void> {
    if (isClosed) return
    const outcomes = await Promise.all(names.map(lookUpName))
    endedAtMs = performance.now()
    if (isClosed) return
    if (outcomes.every(Boolean)) succeeded()
    const before = new Set(current)
    current = resolve()
    if (current.length !== before.size || current.some((address) => !before.has(address))) changed()
    // calls wait for the first addresses
    if (current.length === 0) timer = setTimeout(lookUpAgain, EMPTY_LOOK_UP_PAUSE_MS)
  }
  async function startNext(): Promise<void> {
    await running
    const restMs = endedAtMs + LOOK_UP_PAUSE_MS - performance.now()
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs).unref())
    running = lookUpAll()
    next = undefined
    await running
  }
  function lookUpAgain(): Promise<void> {
    if (names.length === 0) return Promise.resolve()
    clearTimeout(timer)
    next ??= startNext()
    return next
  }
  void lookUpAgain()
  return {
    hasNames: names.length > 0,
    current: () => current,
    lookUp: lookUpAgain,
    ageMs: () => performance.now() - endedAtMs,
    [Symbol.dispose]() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

async function replicasOf(entry: string, lookUp: LookUp): Promise<readonly string[]> {
  const address = addressOf(entry)
  if ('path' in address) throw new Error(`${entry} is not host:port`)
  const hosts = await lookUp(address.host)
  return hosts.map((host) => (host.includes(':') ? `[${host}]:${address.port}` : `${host}:${address.port}`))
}

/** The resolver of the system cannot be interrupted, and may take longer than a call. */
async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = expireAfter(ms, () => reject(new Error(`no answer within ${ms} ms`)))
  try {
    return await Promise.race([work(), promise])
  } finally {
    cancel()
  }
}
