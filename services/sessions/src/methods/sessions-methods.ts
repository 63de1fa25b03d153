import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { admitRouter } from './admit-router.js'
import { claimRouterHosts } from './claim-router-hosts.js'
import { createSession } from './create-session.js'
import { describeRouters } from './describe-routers.js'
import { extendRouter } from './extend-router.js'
import { getRoutePath } from './get-route-path.js'
import { inspect } from './inspect.js'
import type { Deps } from './method-deps.js'
import { reEnrollEdgeRouter } from './re-enroll-edge-router.js'
import { watchEvents } from './watch-events.js'

/** All methods of the service. */
export const sessionsMethods = (deps: Deps): Methods<SessionsServiceService> => ({
  createSession: createSession(deps),
  reEnrollEdgeRouter: reEnrollEdgeRouter(deps),
  admitRouter: admitRouter(deps),
  claimRouterHosts: claimRouterHosts(deps),
  extendRouter: extendRouter(deps),
  describeRouters: describeRouters(deps),
  getRoutePath: getRoutePath(deps),
  inspect: inspect(deps),
  watchEvents: watchEvents(deps),
})
