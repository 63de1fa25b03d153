import { ctrlType, edgeType, modelType } from '@overlay/channel'
import type { RouterFeatures } from '../domain/router-features.js'

type Senders = (features: RouterFeatures) => boolean

const grouped: Senders = ({ isGrouped }) => isGrouped
const beforeGroups: Senders = ({ isGrouped }) => !isGrouped
const withModel: Senders = ({ hasDataModel }) => hasDataModel

/** Types of messages that only some routers send. */
const senders: ReadonlyMap<number, Senders> = new Map<number, Senders>([
  [edgeType.createCircuit, beforeGroups],
  [edgeType.createTerminator, beforeGroups],
  [edgeType.createApiSession, beforeGroups],
  [edgeType.createCircuitForService, beforeGroups],
  [edgeType.listServices, beforeGroups],
  [edgeType.createTunnelTerminator, beforeGroups],
  [edgeType.connectEvents, withModel],
  [modelType.subscribe, withModel],
  [modelType.validateResponse, withModel],
  [ctrlType.updateRouterInterfaces, withModel],
  [ctrlType.linkState, withModel],
  [edgeType.createCircuitV3, grouped],
  [ctrlType.alerts, grouped],
  [ctrlType.linkListeners, grouped],
])

/** Whether routers with these features send messages of this type. Others must not reach its decoder. */
export const sends = (features: RouterFeatures, type: number): boolean =>
  senders.get(type)?.(features) ?? true
