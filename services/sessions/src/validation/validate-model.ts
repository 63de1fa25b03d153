import { ValidatedComponent } from '@overlay/channel'
import type { ModelConcern } from '../model/model-concern.js'
import type { RouterPresence } from '../routers/router-presence.js'
import type { RouterCheck } from './inspect-router.js'

export interface RouterModelDeps {
  readonly presence: Pick<RouterPresence, 'of'>
  /** Undefined: this replica has no routers. */
  readonly model: Pick<ModelConcern, 'validateModel'> | undefined
}

/**
 * Of a router that subscribes at this replica; for others, the result has no type of component. A router without the data
 * model is valid.
 */
export const validateModel =
  ({ presence, model }: RouterModelDeps, fix: boolean): RouterCheck =>
  async (_deps, { id: componentId, name: componentName }) => {
    const result = (success: boolean, errors: string[], componentType = 'router') =>
      ValidatedComponent.encode({
        componentType,
        componentId,
        componentName,
        success,
        errors,
      }).finish()
    const [connection] = presence.of(componentId)
    if (!connection) return result(false, [`router ${componentId} is not connected`])
    if (!connection.features.hasDataModel) return result(true, [])
    try {
      const compared = await model?.validateModel(componentId, fix)
      if (!compared) return result(false, ['the router does not subscribe to the data model'], '')
      const texts = compared.differences.map(
        ({ entityType, entityId, diffType, detail }) => `${entityType} ${entityId} ${diffType}: ${detail}`,
      )
      const others = compared.count - texts.length
      return result(compared.count === 0, others > 0 ? [...texts, `${others} more differences`] : texts)
    } catch (err) {
      // of one router: the others are validated all the same
      return result(false, [err instanceof Error ? err.message : String(err)])
    }
  }
