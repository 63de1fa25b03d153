import { type Bus, type ChangeLog, localSource, openProjection } from '@overlay/platform/change-log'
import { metrics } from '@overlay/platform/process'
import type { Logger } from 'pino'
import { keyPayloads } from '../store/keys.js'
import { type Keyring, readKeyring } from './keyring.js'

export interface KeyringCache extends AsyncDisposable {
  /** Reads and decrypts once, and again after any replica has changed a key. */
  keyring(): Promise<Keyring>
}

export async function openKeyringCache(
  changeLog: ChangeLog,
  secret: string,
  bus: Bus,
  log: Logger,
): Promise<KeyringCache> {
  let cached: Promise<Keyring> | undefined
  const invalidate = (): void => {
    cached = undefined
  }
  const read = async (): Promise<Keyring> => {
    try {
      const keyring = await readKeyring(changeLog.db, secret, new Date())
      for (const [role, expiry] of Object.entries(keyring.expiry))
        metrics.certificateExpiry.set({ role }, expiry.getTime() / 1000)
      return keyring
    } catch (err) {
      invalidate() // the next call reads again
      throw err
    }
  }
  const memory = {
    kinds: ['keys'],
    load: () => ({ add: invalidate, end: invalidate }),
    apply: (changes: readonly unknown[]) => {
      if (changes.length > 0) invalidate()
    },
  }
  const source = localSource(changeLog, { keys: () => keyPayloads(changeLog.db) })
  const projection = await openProjection(source, memory, { bus, log })
  return {
    keyring() {
      cached ??= read()
      return cached
    },
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}
