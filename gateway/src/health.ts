import type { Service } from '@overlay/model'
import type { Health } from '@overlay/process'

/** The parts without which a gateway does not begin. */
const needed: readonly Service[] = ['identity', 'pki', 'policy']

/**
 * The health of a gateway. It becomes ready when it serves and has heard the parts that it needs, and stays ready until
 * it stops. A part that falls silent later is in the checks, and requests that need it are answered 503: all gateways lose
 * it at once, and a balancer without a gateway would also refuse the requests that do not need it.
 */
export function gatewayHealth(
  partStates: () => Readonly<Record<Service, string>>,
  isServing: () => boolean,
): () => Health {
  let hasHeardAll = false
  return () => {
    const parts = partStates()
    hasHeardAll ||= needed.every((part) => parts[part] === 'ok')
    return { ready: hasHeardAll && isServing(), checks: { ...parts, serving: isServing() ? 'ok' : 'no' } }
  }
}
