import type { ChangeLog } from '@overlay/platform/change-log'
import { splitAddress } from '@overlay/platform/process'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { gatewayHosts } from '../domain/host.js'
import { ensureKeys } from './ensure-keys.js'

const CHECK_MS = 3_600_000

export interface RenewalOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly address: string
  readonly log: Logger
}

/** Checks the server certificate now and every hour, in every replica. The first that finds it old replaces it. */
export function startRenewal({ changeLog, keySecret, address, log }: RenewalOptions): AsyncDisposable {
  const stop = new AbortController()
  const options = { secret: keySecret, hosts: gatewayHosts(splitAddress(address).host) }
  const renew = async (): Promise<void> => {
    try {
      const isRenewed = await ensureKeys(changeLog, ownContext(stop.signal), { ...options, now: new Date() })
      if (isRenewed) log.info('server certificate renewed')
    } catch (err) {
      log.error({ err }, 'server certificate not looked at') // the next check is in time: renewal begins months early
    }
  }
  let running = renew()
  const timer = setInterval(() => {
    running = renew()
  }, CHECK_MS)
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      stop.abort()
      await running
    },
  }
}
