import { X509Certificate } from 'node:crypto'
import { metrics } from '@overlay/process'
import { runPeriodically } from '@overlay/process/async'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { storedCertificates } from '../store/router-certificate.js'

const CHECK_MS = 3_600_000
/** Routers ask for new certificates seven days before theirs end. */
const OVERDUE_MS = 5 * 86_400_000
const MAX_LOGGED = 20

/** Reports routers that have not renewed their certificates in time, now and every hour. */
export function watchCertificates(db: Db, log: Logger): AsyncDisposable {
  const check = async (): Promise<void> => {
    try {
      await checkCertificates(db, log, new Date())
    } catch (err) {
      log.warn({ err }, 'certificates of routers not checked')
    }
  }
  const first = check()
  const checking = runPeriodically(CHECK_MS, check)
  return {
    async [Symbol.asyncDispose]() {
      await checking[Symbol.asyncDispose]()
      await first
    },
  }
}

/** Checks the certificate of every router that is not disabled. */
export async function checkCertificates(db: Db, log: Pick<Logger, 'warn'>, now: Date): Promise<void> {
  let earliest = Number.POSITIVE_INFINITY // without routers, no alert
  let overdue = 0
  for await (const { id, name, certPem } of storedCertificates(db)) {
    const expiry = new Date(new X509Certificate(certPem).validTo)
    earliest = Math.min(earliest, expiry.getTime())
    if (expiry.getTime() - now.getTime() > OVERDUE_MS) continue
    if (++overdue <= MAX_LOGGED)
      log.warn({ routerId: id, name, expiry }, 'router has not renewed its certificate in time')
  }
  if (overdue > MAX_LOGGED)
    log.warn({ routers: overdue }, 'more routers have not renewed their certificates in time')
  metrics.routerCertificateExpiry.set(earliest / 1000)
}
