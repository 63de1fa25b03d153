import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { failedRequests } from '../store/failed-request.js'
import type { Deps } from './deps.js'
import { jsonOf } from './encoding.js'

export const listFailedRequests =
  ({ changeLog }: Deps): Methods<PolicyServiceService>['listFailedRequests'] =>
  async ({ identityId }) => ({ json: jsonOf(await failedRequests(changeLog.db, identityId)) })
