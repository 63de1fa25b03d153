import { openPeerTls, type PeerName, type PeerTls, type Refused } from '@overlay/rpc'
import type { Logger } from 'pino'
import { boundedPerSource } from '../process/bounded-lines.js'
import { metrics, noteCertificate } from '../process/metrics.js'

/** Opens the certificate of this process. Without a usable one the process ends, with one line that says why. */
export async function openTls(directory: string, name: PeerName, log: Logger): Promise<PeerTls> {
  try {
    return await openPeerTls(directory, log, {
      name,
      onLoaded: (expires) => noteCertificate('process', expires.getTime()),
      onRefused: () => metrics.peerCertificateRefused.inc({ peer: 'process' }),
    })
  } catch (err) {
    log.fatal(`OVERLAY_TLS: ${(err as Error).message}`)
    process.exit(1)
  }
}

const limits = { perSource: 10, total: 60, withinMs: 60_000 }

/** Counts and logs what peers are refused. */
export function noteRefused(log: Logger): Refused {
  const isWithin = boundedPerSource(limits, (omitted) =>
    log.warn({ lines: 'call refused', omitted, withinSeconds: limits.withinMs / 1000 }, 'lines omitted'),
  )
  return (refusal) => {
    const { method = 'none', caller = 'none' } = refusal
    metrics.rpcRefused.inc({ method, caller })
    if (!isWithin(`${caller} ${method}`)) return
    log.warn(refusal, refusal.method === undefined ? 'connection refused' : 'call refused')
  }
}
