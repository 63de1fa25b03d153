import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { postureView } from '../domain/posture/view.js'
import { postureDataOf } from '../store/posture-data.js'
import type { Deps } from './deps.js'
import { jsonOf } from './encoding.js'

export const getPostureData =
  ({ changeLog }: Deps): Methods<PolicyServiceService>['getPostureData'] =>
  async ({ identityId }) => ({
    json: jsonOf(postureView(await postureDataOf(changeLog.db, identityId))),
  })
