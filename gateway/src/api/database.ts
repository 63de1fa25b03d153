import { kinds, timeText } from '@overlay/model'
import { anyObject, flag, integer, listOf, named, object, orNull, text, time } from '@overlay/model/schema'
import { type Context, Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody, type Endpoint, type RequestContext } from '../http/exchange.js'
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
    response: { status: 202 },
    handle: async (c: RequestContext): Promise<Response> => {
      await identity.startIntegrityRun({ fix }, callContext(c))
      return sendData(c, {}, 202)
    },
  })
  return {
    'POST /database/check-data-integrity': started(false),
    'POST /database/fix-data-integrity': started(true),

    'GET /database/data-integrity-results': {
      response: { data: details, envelope: 'dataIntegrityCheckResultEnvelope' },
      handle: async (c): Promise<Response> => {
        const run = await identity.getIntegrityRun({}, callContext(c))
        const { inProgress, fixing, tooMany, startedAtMs, endedAtMs, error, findings } = run
        const data = {
          endTime: endedAtMs ? timeText(new Date(endedAtMs)) : null,
          error: error || null,
          fixingErrors: fixing,
          inProgress,
          results: findings.length > 0 ? findings : null, // wire: `results` is null, not an empty list
          startTime: startedAtMs ? timeText(new Date(startedAtMs)) : null,
          tooManyErrors: tooMany,
        }
        // wire: `meta.pagination` has limit -1 and offset 0
        const pagination = { limit: -1, offset: 0, totalCount: findings.length }
        return sendData(c, data, 200, JSON.stringify({ pagination }))
      },
    },

    'POST /database/snapshot': async (c) => {
      await identity.takeSnapshot({}, callContext(c))
      return sendEmpty(c)
    },
  }
}

const snapshotBody = json('snapshot', named('databaseSnapshotCreate', object({}, { path: text })), false)
const snapshotDetails = named('databaseSnapshotCreateDetails', object({ path: text }))
const member = json('member', anyObject, false)

/** wire: the answer of a controller that is not one of a Raft cluster. */
const noCluster = (): never => {
  throw new Fault('SERVER_NOT_RUNNING_IN_HA_MODE')
}

/** Jobs whose paths differ from those of the management API, and the operations of Raft clusters. */
export const fabricDatabase = ({ identity }: Services): Handlers => ({
  'POST /database': async (c) => {
    await identity.takeSnapshot({}, callContext(c))
    return sendEmpty(c)
  },
  // differs: the directory of snapshots is a setting; a request cannot write elsewhere
  'POST /database/snapshot': acceptBody(
    snapshotBody,
    async (c) => sendData(c, { path: (await identity.takeSnapshot({}, callContext(c))).name }),
    { response: { data: snapshotDetails, envelope: 'databaseSnapshotCreateResultEnvelope' } },
  ),
  'GET /raft/list-members': noCluster,
  'POST /raft/add-member': acceptBody(member, noCluster),
  'POST /raft/remove-member': acceptBody(member, noCluster),
  'POST /raft/transfer-leadership': acceptBody(member, noCluster),
})

/** Further names of the original: second factors are no kind; the others do not exist here. */
const withoutKind = { mfas: 'second-factors', eventualEvents: '', revocations: '' }
const ofKinds = [...kinds.values()].flatMap(({ kind, summaryNames }) =>
  summaryNames.map((name) => [name, kind] as const),
)
const counted = [...ofKinds, ...Object.entries(withoutKind)].sort(([a], [b]) => (a < b ? -1 : 1))

const owners = new Set([...kinds.values()].map(({ owner }) => owner))

const schema = named(
  'listSummaryCounts',
  object(Object.fromEntries(counted.map(([name]) => [name, integer]))),
)

/** The number of rows of every kind, by the names of the original. Each owner counts its own. */
export async function countEntities(
  { entitiesOf }: Pick<Services, 'entitiesOf'>,
  context: Context,
): Promise<Readonly<Record<string, number>>> {
  const counts = await Promise.all([...owners].map((owner) => entitiesOf(owner).count({}, context)))
  const rows: Record<string, number> = Object.assign({}, ...counts.map((count) => count.rows))
  return Object.fromEntries(counted.map(([name, kind]) => [name, rows[kind] ?? 0]))
}

export const summary = (services: Services): Handlers => ({
  'GET /summary': {
    response: { data: schema, meta: null, envelope: 'listSummaryCountsEnvelope' },
    handle: async (c) => {
      const data = await countEntities(services, callContext(c))
      return sendData(c, data, 200, 'null') // wire: `meta` is null
    },
  },
})
