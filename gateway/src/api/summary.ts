import { kinds } from '@overlay/model'
import type { Services } from '../clients/services.js'
import { send } from '../http/answer.js'
import { named, object, whole } from '../openapi/schemas.js'
import type { Handlers } from './operations.js'

/** wire: what is counted, by the names of the original. What is no kind here does not exist, so there is none of it. */
const counted = [
  'apiSessionCertificates',
  'apiSessions',
  'authPolicies',
  'authenticators',
  'cas',
  'configTypes',
  'configs',
  'controllers',
  'edgeRouterPolicies',
  'enrollments',
  'eventualEvents',
  'externalJwtSigners',
  'identities',
  'identityTypes',
  'mfas',
  'postureCheckTypes',
  'postureChecks',
  'revocations',
  'routers',
  'routers.edge',
  'serviceEdgeRouterPolicies',
  'servicePolicies',
  'services',
  'services.edge',
  'sessions',
  'terminators',
] as const

const kindOf: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...kinds.values()].map(({ kind, plural }) => [plural, kind])),
  routers: 'transit-routers', // this list shows both sorts
  'routers.edge': 'edge-routers',
  'services.edge': 'services',
  mfas: 'second-factors', // no kind of its own
}

const owners = new Set([...kinds.values()].map(({ owner }) => owner))

const schema = named('listSummaryCounts', object(Object.fromEntries(counted.map((name) => [name, whole]))))

/** How much there is of everything. Each owner counts its own rows. */
export const summary = ({ entitiesOf }: Services): Handlers => ({
  'GET /summary': {
    about: { data: schema, meta: null, envelope: 'listSummaryCountsEnvelope' },
    handle: async (c) => {
      const counts = await Promise.all([...owners].map((owner) => entitiesOf(owner).count({}, c.context())))
      const rows: Record<string, number> = Object.assign({}, ...counts.map((count) => count.rows))
      const data = Object.fromEntries(counted.map((name) => [name, rows[kindOf[name] ?? ''] ?? 0]))
      return send(c, 200, JSON.stringify({ data, meta: null })) // wire: null here
    },
  },
})
