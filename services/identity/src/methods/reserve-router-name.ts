import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { endLapsedNames } from '../jobs/lapsed-names.js'
import { hasRouter, releaseName, reserveName } from '../store/reserved-names.js'
import type { Deps } from './deps.js'

type Method<Name extends keyof Methods<IdentityServiceService>> = Methods<IdentityServiceService>[Name]

/**
 * The identity of a router has its name. The router gets it only if no other identity has it, and no router that has
 * given it up keeps it from others because this service has not followed that yet.
 */
export const reserveRouterName =
  ({ changeLog: { db }, routers }: Pick<Deps, 'changeLog' | 'routers'>): Method<'reserveRouterName'> =>
  async (request, { deadline, signal }) => {
    const reserve = () => db.transaction(deadline, (tx) => reserveName(tx, request))
    if (await reserve()) return {}
    if (await hasRouter(db, request.name)) await routers.catchUp(signal)
    await endLapsedNames(db, routers, signal)
    if (await reserve()) return {}
    throw invalid('name', 'name must be unique', request.name)
  }

export const releaseRouterName =
  ({ changeLog: { db } }: Deps): Method<'releaseRouterName'> =>
  async (request) => {
    await releaseName(db, request)
    return {}
  }
