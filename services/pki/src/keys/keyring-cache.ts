import { type Bus, type ChangeLog, localSource, openProjection } from '@overlay/platform/change-log'
import { metrics } from '@overlay/platform/process'
import type { Logger } from 'pino'
import { allKeysTold } from '../store/keys.js'
import { type Keyring, readKeyring } from './keyring.js'

export interface Keys extends AsyncDisposable {
  /** Opened once, and again when any replica has changed a key. */
  keyring(): Promise<Keyring>
}

export async function openKeys(changeLog: ChangeLog, secret: string, bus: Bus, log: Logger): Promise<Keys> {
  let known: Promise<Keyring> | undefined
  const forget = (): void => {
    known = undefined
  }
  const read = async (): Promise<Keyring> => {
    try {
      const keyring = await readKeyring(changeLog.db, secret, new Date())
      for (const [role, expiry] of Object.entries(keyring.expiry))
        metrics.certificateExpiry.set({ role }, expiry.getTime() / 1000)
      return keyring
    } catch (err) {
      forget() // who asks next reads again
      throw err
    }
  }
  const memory = {
    kinds: ['keys'],
    load: () => ({ add: forget, end: forget }),
    apply: (changes: readonly unknown[]) => {
      if (changes.length > 0) forget()
    },
  }
  const source = localSource(changeLog, { keys: () => allKeysTold(changeLog.db) })
  const projection = await openProjection(source, memory, { bus, log })
  return {
    keyring() {
      known ??= read()
      return known
    },
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}
