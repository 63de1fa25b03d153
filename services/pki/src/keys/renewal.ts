import type { ChangeLog } from '@overlay/platform/change-log'
import { splitAddress } from '@overlay/platform/process'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { servedHosts } from '../domain/hosts.js'
import { ensureKeys } from './ensure-keys.js'

const EVERY_MS = 3_600_000

export interface RenewingOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly address: string
  readonly log: Logger
}

/** Looks at the server certificate now and then, in every replica: the first that finds it old makes the next one. */
export function startRenewing({ changeLog, keySecret, address, log }: RenewingOptions): AsyncDisposable {
  const stop = new AbortController()
  const wanted = { secret: keySecret, hosts: servedHosts(splitAddress(address).host) }
  let running: Promise<unknown> = Promise.resolve()
  const look = async (): Promise<void> => {
    try {
      const made = await ensureKeys(changeLog, ownContext(stop.signal), { ...wanted, now: new Date() })
      if (made) log.info('server certificate renewed')
    } catch (err) {
      log.error({ err }, 'server certificate not looked at') // the next look comes in time: it is renewed months early
    }
  }
  const timer = setInterval(() => {
    running = look()
  }, EVERY_MS)
  running = look()
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stop.abort()
      await running
    },
  }
}
