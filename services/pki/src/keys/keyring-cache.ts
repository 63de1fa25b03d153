import { metrics } from '@overlay/process'
import { openLimit } from '@overlay/process/async'
import type { Context } from '@overlay/rpc'
import { type ChangeLog, localSource, watchKinds } from '@overlay/store/change-log'
import { bestEffort } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { rotationOf, type TokenKeyRules } from '../domain/token-key-plan.js'
import { KEYS_REACH_MS } from '../limits.js'
import { keyPayloads } from '../store/key-states.js'
import { readAllKeys } from './all-keys.js'
import { reportKeys } from './key-report.js'
import { type Keyring, keyringOf, readTokenKeyring, type TokenKeyring } from './keyring.js'

/** Reads and decrypts once, and again after any replica has changed a key. */
export interface KeyringCache extends AsyncDisposable {
  keyring(): Promise<Keyring>
  tokenKeyring(): Promise<TokenKeyring>
  /** Waits until this replica has the changes of keys that the caller has seen, for two seconds at most. */
  reach(context: Context): Promise<void>
}

export interface KeyringCacheOptions {
  readonly keySecret: string
  readonly tokenKeyRules: TokenKeyRules
  readonly log: Logger
  now(): Date
}

export async function openKeyringCache(
  changeLog: ChangeLog,
  { keySecret, tokenKeyRules, log, now }: KeyringCacheOptions,
): Promise<KeyringCache> {
  const keyring = cacheUntilForgotten(async () => {
    const { certified, planned } = await readAllKeys(changeLog.db)
    reportKeys(planned, tokenKeyRules)
    return keyringOf(certified, keySecret, now())
  })
  const tokenKeyring = cacheUntilForgotten(async () => {
    const keyring = await readTokenKeyring(changeLog.db, keySecret)
    metrics.tokenKeyRotation.set(rotationOf(keyring.active, tokenKeyRules).getTime() / 1000)
    return keyring
  })
  const invalidate = (): void => {
    keyring.forget()
    tokenKeyring.forget()
  }
  const source = localSource(changeLog, { keys: () => keyPayloads(changeLog.db) })
  const projection = await watchKinds(source, ['keys'], invalidate, { log })
  return {
    keyring: keyring.get,
    tokenKeyring: tokenKeyring.get,
    async reach(context) {
      const position = context.positions[source.schema]
      if (!position) return
      using limit = openLimit(KEYS_REACH_MS, context.signal)
      await bestEffort(source.schema, projection.waitFor(position, limit.signal))
    },
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}

/** Concurrent readers share a read. A failed one is not kept. */
function cacheUntilForgotten<T>(read: () => Promise<T>) {
  let value: Promise<T> | undefined
  const forget = (): void => {
    value = undefined
  }
  const readOnce = (): Promise<T> => {
    const reading = read()
    reading.catch(forget) // the callers get the failure
    return reading
  }
  return { forget, get: (): Promise<T> => (value ??= readOnce()) }
}
