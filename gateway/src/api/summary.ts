import { kinds } from '@overlay/model'
import { integer, named, object } from '@overlay/model/schema'
import type { Context } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { callContext } from '../http/calls.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

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
    about: { data: schema, meta: null, envelope: 'listSummaryCountsEnvelope' },
    handle: async (c) => {
      const data = await countEntities(services, callContext(c))
      return send(c, 200, JSON.stringify({ data, meta: null })) // wire: null here
    },
  },
})
