import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { endLapsedNames } from '../jobs/lapsed-names.js'
import { hasRouter, releaseName, reserveName } from '../store/reserved-names.js'
import type { Deps } from './deps.js'

/** Names of routers, which their identities have, too. */
export function routerNameMethods(deps: Pick<Deps, 'changeLog' | 'routers'>) {
  const { changeLog, routers } = deps
  const { db } = changeLog
  return {
    /**
     * The identity of a router has its name. The router gets it only if no other identity has it, and no router that has
     * given it up keeps it from others because this service has not followed that yet.
     */
    async reserveRouterName(request, { deadline, signal }) {
      const reserve = () => db.transaction(deadline, (tx) => reserveName(tx, request))
      if (await reserve()) return {}
      if (await hasRouter(db, request.name)) await routers.catchUp(signal)
      await endLapsedNames(db, routers, signal)
      if (await reserve()) return {}
      throw invalid('name', 'name must be unique', request.name)
    },

    async releaseRouterName(request) {
      await releaseName(db, request)
      return {}
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}
