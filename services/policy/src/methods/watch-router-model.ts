import { Fault, type Methods, type PolicyServiceService } from '@overlay/rpc'

/** Streams the part of the router data model that follows from policies. */
export const watchRouterModel = (): Methods<PolicyServiceService>['watchRouterModel'] =>
  // biome-ignore lint/correctness/useYield: it has nothing to stream yet
  async function* () {
    throw new Fault('UNAVAILABLE')
  }
