import type { Methods, SessionsServiceService } from '@overlay/rpc'
import type { ChangeLog, WaitForFollowers } from '@overlay/store/change-log'
import type { Names } from '@overlay/store/kind-store'
import type { Engine } from '../engine/engine.js'
import type { RouterModels } from '../model/router-models.js'

/** What the methods of this service use. */
export interface MethodDeps {
  readonly changeLog: ChangeLog
  readonly engine: Engine
  readonly models: RouterModels
  /** Names of entities of other services. */
  readonly names: Names
  readonly routers: Pick<Methods<SessionsServiceService>, 'describeRouters'>
  readonly waitForFollowers: WaitForFollowers
}
