import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { failedRequests } from '../store/failed-request.js'
import { jsonOf } from './encoding.js'
import type { Deps } from './method-deps.js'

export const listFailedRequests =
  ({ changeLog }: Deps): Methods<PolicyServiceService>['listFailedRequests'] =>
  async ({ identityId }) => ({ json: jsonOf(await failedRequests(changeLog.db, identityId)) })
