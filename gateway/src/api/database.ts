import { timeText } from '@overlay/model'
import { flag, listOf, named, object, orNull, text, time } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { empty } from '../http/answer.js'
import { callContext } from '../http/calls.js'
import type { Endpoint, RequestContext } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const details = named(
  'dataIntegrityCheckDetails',
  object(
    {},
    {
      endTime: orNull(time),
      error: orNull(text),
      fixingErrors: flag,
      inProgress: flag,
      results: orNull(listOf(object({}, { description: text, fixed: flag }))),
      startTime: orNull(time),
      tooManyErrors: flag,
    },
  ),
)

/** Jobs over the rows of all services. Identity runs them. */
export function database({ identity }: Services): Handlers {
  const started = (fix: boolean): Endpoint => ({
    about: { status: 202 },
    handle: async (c: RequestContext): Promise<Response> => {
      await identity.startIntegrityRun({ fix }, callContext(c))
      return send(c, 202, '{"data":{},"meta":{}}')
    },
  })
  return {
    'POST /database/check-data-integrity': started(false),
    'POST /database/fix-data-integrity': started(true),

    'GET /database/data-integrity-results': {
      about: { data: details, envelope: 'dataIntegrityCheckResultEnvelope' },
      handle: async (c): Promise<Response> => {
        const run = await identity.getIntegrityRun({}, callContext(c))
        const { inProgress, fixing, tooMany, startedAtMs, endedAtMs, error, findings } = run
        const data = {
          endTime: endedAtMs ? timeText(new Date(endedAtMs)) : null,
          error: error || null,
          fixingErrors: fixing,
          inProgress,
          results: findings.length > 0 ? findings : null, // wire: no empty list
          startTime: startedAtMs ? timeText(new Date(startedAtMs)) : null,
          tooManyErrors: tooMany,
        }
        // wire: pagination of a list without pages
        const pagination = { limit: -1, offset: 0, totalCount: findings.length }
        return send(c, 200, JSON.stringify({ data, meta: { pagination } }))
      },
    },

    'POST /database/snapshot': async (c) => {
      await identity.takeSnapshot({}, callContext(c))
      return empty(c)
    },
  }
}
