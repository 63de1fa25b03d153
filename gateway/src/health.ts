import type { Service } from '@overlay/model'
import type { Health } from '@overlay/process'

/** The components without which a gateway does not become ready. */
const needed: readonly Service[] = ['identity', 'pki', 'policy']

/**
 * The health of a gateway. It becomes ready when it serves and follows the components that it needs, and stays ready until
 * it stops. A component that becomes unavailable later shows in the checks, and requests that need it are answered 503: all gateways lose
 * it at once, and a balancer without a gateway would also refuse the requests that do not need it.
 */
export function gatewayHealth(
  componentStates: () => Readonly<Record<Service, string>>,
  isServing: () => boolean,
): () => Health {
  let hasFollowedAll = false
  return () => {
    const states = componentStates()
    hasFollowedAll ||= needed.every((component) => states[component] === 'ok')
    return { ready: hasFollowedAll && isServing(), checks: { ...states, serving: isServing() ? 'ok' : 'no' } }
  }
}
