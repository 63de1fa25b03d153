import {
  connectPeers,
  type LocalServices,
  localPeers,
  openPeerTls,
  type PeerName,
  type Peers,
  type PeersOptions,
  type PeerTls,
  type Refused,
  type UnavailableCall,
} from '@overlay/rpc'
import type { Logger } from 'pino'
import { openOutage } from '../async/outage.js'
import { boundedLines, boundedPerSource } from '../bounded-lines.js'
import { CALL_LINE_LIMITS } from '../limits.js'
import { metrics, noteCertificate } from '../metrics.js'
import { keepRefusal } from '../recent.js'
import { WrongSettings } from '../settings.js'

/**
 * Opens the certificate of this process.
 * @throws {WrongSettings} if the directory has no usable one
 */
export async function openTls(directory: string, name: PeerName, log: Logger): Promise<PeerTls> {
  try {
    return await openPeerTls(directory, log, {
      name,
      onLoaded: (expires) => noteCertificate('process', name, expires.getTime()),
      onRefused: () => metrics.peerCertificateRefused.inc({ peer: 'process' }),
    })
  } catch (err) {
    throw new WrongSettings(`settings: OVERLAY_TLS: ${(err as Error).message}`, { cause: err })
  }
}

interface OpenPeersOptions extends Pick<PeersOptions, 'tls' | 'service'> {
  readonly log: Logger
  /** The services of this process, called in place of other replicas. */
  readonly local: LocalServices | undefined
}

/** Connects to the replicas of a service. Failed look-ups of their name are logged. */
export function openPeers(addresses: string, { tls, service, log, local }: OpenPeersOptions): Peers {
  const connect = (to: string): Peers => {
    const outage = openOutage((err) => log.warn({ err, peers: service }, 'look-up of peers failed'))
    return connectPeers(to, { tls, service, onLookUpFailed: outage.failed, onLookedUp: outage.works })
  }
  if (!local) return connect(addresses)
  const connectOthers = (own: string): Peers | undefined => {
    const others = addresses.split(',').filter((address) => address.trim() !== own)
    return others.length > 0 ? connect(others.join()) : undefined
  }
  return localPeers({ local, service, caller: tls.name, connect: connectOthers })
}

/** Counts and logs what peers are refused. */
export function noteRefused(log: Logger): Refused {
  const isWithin = boundedPerSource(CALL_LINE_LIMITS, (omitted) =>
    log.warn(
      { lines: 'call refused', omitted, withinSeconds: CALL_LINE_LIMITS.withinMs / 1000 },
      'lines omitted',
    ),
  )
  return (refusal) => {
    const { method = 'none', caller = 'none' } = refusal
    metrics.rpcRefused.inc({ method, caller })
    if (!isWithin(`${caller} ${method}`)) return
    const message = refusal.method === undefined ? 'connection refused' : 'call refused'
    log.warn(refusal, message)
    keepRefusal(message, refusal)
  }
}

/** Logs why calls are answered 503. */
export function noteUnavailable(log: Logger): (call: UnavailableCall) => void {
  const write = boundedLines(log, 'call answered 503', CALL_LINE_LIMITS, 'warn')
  return (call) => write(call.method, call)
}
