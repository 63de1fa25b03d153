import type { Health } from '@overlay/platform/process'

/**
 * The health of a gateway: ready from when it serves and has heard every other part, until it stops. A part that falls
 * silent later is in the checks, and requests that need it are answered 503; the gateway stays ready, because all
 * gateways lose the part at once, and a balancer without a gateway refuses the requests that need other parts, too.
 */
export function gatewayHealth(
  partStates: () => Readonly<Record<string, string>>,
  isServing: () => boolean,
): () => Health {
  let wasWhole = false
  return () => {
    const parts = partStates()
    wasWhole ||= Object.values(parts).every((state) => state === 'ok')
    return { ready: wasWhole && isServing(), checks: { ...parts, serving: isServing() ? 'ok' : 'no' } }
  }
}
