import type { ChangeLog } from '@overlay/platform/change-log'
import { splitAddress } from '@overlay/platform/process'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { serverHosts } from '../domain/host.js'
import { ensureKeys } from './ensure-keys.js'

const CHECK_MS = 3_600_000

export interface RenewalOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  readonly address: string
  /** Where routers reach the control channel, as host:port. */
  readonly ctrlAddress: string
  readonly log: Logger
}

/** Checks the server certificate now and every hour, in every replica. The first that finds it old replaces it. */
export function startRenewal(options: RenewalOptions): AsyncDisposable {
  const stop = new AbortController()
  const { changeLog, keySecret: secret, address, ctrlAddress, log } = options
  const hosts = serverHosts([address, ctrlAddress].map((text) => splitAddress(text).host))
  const renew = async (): Promise<void> => {
    try {
      const isRenewed = await ensureKeys(changeLog, ownContext(stop.signal), {
        secret,
        hosts,
        now: new Date(),
      })
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
