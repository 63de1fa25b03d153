import type { RouterNames } from '../src/kinds/reserved-names.js'

/** No identity has the name of a router. */
export const freeNames: RouterNames = {
  reserveRouterName: async () => ({}),
  releaseRouterName: async () => ({}),
}
