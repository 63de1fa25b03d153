import { X509Certificate } from 'node:crypto'
import { metrics } from '@overlay/process'
import { runPeriodically } from '@overlay/process/async'
import type { Db } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { CERTIFICATE_CHECK_MS, MAX_OVERDUE_LOGGED, OVERDUE_MS } from '../limits.js'
import { storedCertificates } from '../store/router-certificate.js'

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
  const checking = runPeriodically(CERTIFICATE_CHECK_MS, check)
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
    if (++overdue <= MAX_OVERDUE_LOGGED)
      log.warn({ routerId: id, name, expiry }, 'router has not renewed its certificate in time')
  }
  if (overdue > MAX_OVERDUE_LOGGED)
    log.warn({ routers: overdue }, 'more routers have not renewed their certificates in time')
  metrics.routerCertificateExpiry.set(earliest / 1000)
}
