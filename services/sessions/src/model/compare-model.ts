import { type DataStateDifference, modelType, ValidateDataStateResponse } from '@overlay/channel'
import { decodeLimited, type Handler } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { showableMembers } from '../domain/router-text.js'
import {
  COMPARE_MODEL_MS,
  DIFFERENCE_READS,
  FULL_MODEL_MS,
  LONGEST_TEXT,
  MOST_DIFFERENCES,
  SKIPPED_BYTES,
} from '../limits.js'
import { type OwnEvents, validation } from './encode-model.js'
import type { WithModel } from './full-models.js'

/** How the model of a router differs from what it should have. */
export interface ModelComparison {
  /** Of which the first are listed. Infinity: so many that the router's answer is too large. */
  readonly count: number
  readonly differences: readonly DataStateDifference[]
}

/** Asks routers to compare their models with full states. */
export function openComparison(withModel: WithModel, ownOf: (router: RouterChannel) => OwnEvents) {
  const oversized = new Map<RouterChannel, () => void>()

  async function compare(router: RouterChannel): Promise<ModelComparison> {
    const { routerId, channel } = router
    const tooLarge = Promise.withResolvers<ModelComparison>()
    oversized.set(router, () => tooLarge.resolve({ count: Number.POSITIVE_INFINITY, differences: [] }))
    let limit: NodeJS.Timeout | undefined
    try {
      return await withModel(routerId, channel.closed, (model) => {
        // it waits for messages before it, and the routers that are compared next wait for it
        limit = setTimeout(() => channel.close('the peer does not read'), FULL_MODEL_MS)
        const compose = () => validation({ model, own: ownOf(router), timelineId: '' })
        const answer = channel.requestLarge(compose, COMPARE_MODEL_MS).then(({ body }) => comparisonIn(body))
        return Promise.race([answer, tooLarge.promise])
      })
    } finally {
      clearTimeout(limit)
      oversized.delete(router)
    }
  }

  /** Answers that the channel has not matched, because their bodies are too large. */
  const handler: Handler = {
    type: modelType.validateResponse,
    mostBytes: SKIPPED_BYTES,
    prepare:
      ({ skippedBytes }, router) =>
      () => {
        if (skippedBytes !== undefined) oversized.get(router)?.()
      },
  }
  return { compare, handler }
}

/** A router keeps revocations that have expired while it was offline. They are of no use, and do no harm. */
const isHarmless = ({ entityType, diffType }: DataStateDifference): boolean =>
  entityType === 'revocations' && diffType === 'added'

function comparisonIn(body: Buffer): ModelComparison {
  const { diffs } = decodeLimited(ValidateDataStateResponse, body, DIFFERENCE_READS)
  const real = diffs.filter((one) => !isHarmless(one))
  const differences = real
    .slice(0, MOST_DIFFERENCES)
    .map((one) => showableMembers({ ...one, detail: one.detail.slice(0, LONGEST_TEXT) }))
  return { count: real.length, differences }
}
