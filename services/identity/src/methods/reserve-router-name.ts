import { type IdentityServiceService, invalid, type Methods } from '@overlay/rpc'
import { endLapsedNames } from '../jobs/lapsed-names.js'
import { releaseName, reserveName } from '../store/reserved-names.js'
import type { Deps } from './deps.js'

type Method<Name extends keyof Methods<IdentityServiceService>> = Methods<IdentityServiceService>[Name]

/** The identity of a router has its name. The router gets it only if no other identity has it. */
export const reserveRouterName =
  ({ changeLog: { db }, routers }: Deps): Method<'reserveRouterName'> =>
  async (request, { deadline, signal }) => {
    const reserve = () => db.transaction(deadline, (tx) => reserveName(tx, request))
    if ((await reserve()) || ((await endLapsedNames(db, routers, signal)) && (await reserve()))) return {}
    throw invalid('name', 'name must be unique', request.name)
  }

export const releaseRouterName =
  ({ changeLog: { db } }: Deps): Method<'releaseRouterName'> =>
  async (request) => {
    await releaseName(db, request)
    return {}
  }
