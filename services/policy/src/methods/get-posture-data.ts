import type { Methods, PolicyServiceService } from '@overlay/rpc'
import { postureView } from '../domain/posture/posture-view.js'
import { postureDataOf } from '../store/posture-data.js'
import { jsonOf } from './encoding.js'
import type { Deps } from './method-deps.js'

export const getPostureData =
  ({ changeLog }: Deps): Methods<PolicyServiceService>['getPostureData'] =>
  async ({ identityId }) => ({
    json: jsonOf(postureView(await postureDataOf(changeLog.db, identityId))),
  })
