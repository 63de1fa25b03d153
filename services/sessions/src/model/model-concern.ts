import { ModelAction, modelType, SubscribeToDataModelRequest } from '@overlay/channel'
import { boundedLines, LINE_LIMITS } from '@overlay/process'
import type { Logger } from 'pino'
import { type Concern, onMessage } from '../channel/handlers.js'
import type { RouterChannel, RouterChannels } from '../channel/router-channel.js'
import type { SyncReport } from '../channel/router-status.js'
import { COMPARED_MODELS_AT_ONCE, FULL_MODELS_AT_ONCE, MAX_SUBSCRIPTION_ID_LENGTH } from '../limits.js'
import { type ModelChecksOptions, startModelChecks } from './check-models.js'
import { type ModelComparison, openComparison } from './compare-model.js'
import { encodeOwn, joinOwn, keyEvent, syntheticChange } from './encode-model.js'
import { type ModelOwner, openFullModels } from './full-models.js'
import { type KeyOwner, openPublishedKeys } from './published-keys.js'
import { type AccessRevocations, openRevocations } from './revocations.js'
import { openRouterModel, type RouterModel } from './router-model.js'
import { type BudgetOptions, openSubscriptionBudget } from './subscription-budget.js'

export interface ModelDeps extends Pick<ModelChecksOptions, 'checkMs' | 'recheckMs'>, BudgetOptions {
  readonly channels: Pick<RouterChannels, 'get'>
  readonly policy: ModelOwner
  readonly pki: KeyOwner
  readonly access: AccessRevocations
  readonly sync: SyncReport
  readonly log: Logger
}

export interface ModelConcern extends Concern, AsyncDisposable {
  /**
   * Compares the model of a router with what it should have. Undefined: the router has no subscription at this replica.
   * Throws if it cannot compare.
   * @param fix whether a model that differs is replaced
   */
  validateModel(routerId: string, fix: boolean): Promise<ModelComparison | undefined>
}

/** The router data model: what routers know of identities, services, policies, keys and revocations. */
export async function modelConcern(deps: ModelDeps): Promise<ModelConcern> {
  await using opening = new AsyncDisposableStack()
  const { channels, policy, pki, access, sync, log } = deps
  const models = new Map<RouterChannel, RouterModel>()
  const budget = openSubscriptionBudget(deps)
  const keys = opening.use(
    await openPublishedKeys(pki, log, (events) => {
      const change = syntheticChange(events)
      for (const model of models.values()) model.changed(change)
    }),
  )
  const revocations = opening.use(
    openRevocations(access, (events) => {
      const change = syntheticChange(events)
      for (const [{ features }, model] of models) if (features.isGrouped) model.changed(change)
    }),
  )
  const encodedKeys = () => encodeOwn(keys.all().map((key) => keyEvent(ModelAction.CREATE, key)))
  // wire: routers before 2.0 do nothing with revocations
  const ownOf = ({ features }: RouterChannel) =>
    features.isGrouped ? joinOwn(encodedKeys(), revocations.all()) : encodedKeys()
  const withModel = openFullModels(policy, 'router-models', FULL_MODELS_AT_ONCE)
  const compared = openFullModels(policy, 'compared-router-models', COMPARED_MODELS_AT_ONCE)
  const noteOutage = boundedLines(log, 'data model of a router not sent, trying again', LINE_LIMITS, 'warn')
  const comparison = openComparison(compared, ownOf)
  opening.use(startModelChecks({ ...deps, models, compare: comparison.compare }))
  opening.defer(() => {
    for (const model of models.values()) model.end()
  })

  function modelOf(router: RouterChannel): RouterModel {
    const known = models.get(router)
    if (known) return known
    const own = () => ownOf(router)
    const model = openRouterModel(router, {
      policy,
      withModel,
      keys,
      own,
      turnOf: budget.turnOf,
      sync,
      noteOutage,
    })
    models.set(router, model)
    return model
  }

  const opened = opening.move()
  return {
    handlers: [
      onMessage(modelType.subscribe, SubscribeToDataModelRequest, (request, _message, router) => {
        const { routerId, channel } = router
        if (channel.closed.aborted) return
        const longest = Math.max(request.subscriptionId.length, request.timelineId.length)
        if (longest > MAX_SUBSCRIPTION_ID_LENGTH) channel.close('malformed subscription')
        else if (!budget.take(routerId)) channel.close('too many subscriptions')
        else modelOf(router).subscribe(request)
      }),
      comparison.handler,
    ],
    disconnected(router) {
      models.get(router)?.end()
      models.delete(router)
    },
    async validateModel(routerId, fix) {
      const router = channels.get(routerId)
      const model = router && models.get(router)
      if (!router || !model?.isSubscribed()) return undefined
      if (!router.features.comparesModel) {
        if (fix) model.replace()
        throw new Error(`not compared${fix ? ', but sent again' : ''}: a router before 2.0.1 may die of it`)
      }
      const result = await comparison.compare(router)
      if (fix && result.count > 0) model.replace()
      return result
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
