import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { admitRouter } from './admit-router.js'
import { type CreateSessionDeps, createSession } from './create-session.js'
import { describeRouters } from './describe-routers.js'
import { getRoutePath } from './get-route-path.js'
import { type ReEnrollDeps, reEnrollEdgeRouter } from './re-enroll-edge-router.js'

/** All methods of the service. */
export const sessionsMethods = (deps: CreateSessionDeps & ReEnrollDeps): Methods<SessionsServiceService> => ({
  createSession: createSession(deps),
  reEnrollEdgeRouter: reEnrollEdgeRouter(deps),
  admitRouter: admitRouter(deps.changeLog),
  describeRouters: describeRouters(deps.db),
  getRoutePath: getRoutePath(deps.db),
})
