import { boundedPerSource, keepRefusal, metrics } from '@overlay/process'
import type { Logger } from 'pino'
import { MOST_REFUSED, REFUSAL_LINES } from '../limits.js'
import type { Refused } from './check-hello.js'

interface Facts {
  readonly sourceAddress: string
  /** What the hello says. Undefined: there was none. */
  readonly routerId?: string
  readonly version?: string
  /** Undefined: no router of the network has this id. */
  readonly name?: string | undefined
}

const REFUSED = 'connection of a router refused'

/**
 * Logs refused connections, and keeps them for the status page. A router tries again every few seconds: each reason is
 * logged once until the router connects. Peers that are no routers of the network are logged at a limited rate.
 */
export function openRefusals(log: Logger) {
  const isWithin = boundedPerSource(REFUSAL_LINES)
  /** Logged reasons by router, the longest known first. */
  const reasons = new Map<string, Set<string>>()

  /** False: it is remembered already. */
  function remember(routerId: string, reason: string): boolean {
    const [oldest] = reasons.keys()
    const ofRouter = reasons.get(routerId) ?? new Set()
    if (ofRouter.has(reason)) return false
    if (reasons.size >= MOST_REFUSED && ofRouter.size === 0 && oldest !== undefined) reasons.delete(oldest)
    reasons.set(routerId, ofRouter.add(reason))
    return true
  }

  return {
    note({ reason, message }: Refused, facts: Facts): void {
      metrics.routersRefused.inc({ reason })
      const refusal = { ...facts, reason, detail: message }
      const { sourceAddress, routerId = '', name } = facts
      const isOfNetwork = name !== undefined
      if (isOfNetwork ? remember(routerId, reason) : isWithin(`${reason} ${routerId || sourceAddress}`)) {
        log.warn(refusal, REFUSED)
        keepRefusal(REFUSED, refusal)
      } else log.debug(refusal, REFUSED)
    },
    /** The router has connected to any replica: its next refusal is logged. */
    forget: (routerId: string): void => void reasons.delete(routerId),
  }
}
