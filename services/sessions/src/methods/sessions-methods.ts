import type { Methods, SessionsServiceService } from '@overlay/rpc'
import { validate } from '../validation/validate.js'
import { checkSessionToken } from './check-session-token.js'
import { createSession } from './create-session.js'
import { inspect } from './inspect.js'
import type { Deps } from './method-deps.js'
import { routerMethods } from './router-methods.js'
import { watchEvents } from './watch-events.js'

/** All methods of the service. */
export const sessionsMethods = (deps: Deps): Methods<SessionsServiceService> => ({
  ...routerMethods(deps),
  checkSessionToken: checkSessionToken(deps),
  createSession: createSession(deps),
  inspect: inspect(deps),
  watchEvents: watchEvents(deps),
  validate: validate(deps),
})
