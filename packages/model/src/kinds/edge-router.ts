import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag, integer, listOf, mapOf, text } from '../kernel/schema.js'
import { CLIENT_ROUTERS } from '../limits.js'
import { networkInterface, routerEnrollmentMembers, versionInfo } from './transit-router.js'

const connection = {
  hostname: text,
  isOnline: flag,
  supportedProtocols: mapOf(text),
  syncStatus: text,
}

/** Members of a router that sessions and services show. */
export const commonRouterMembers = {
  ...connection,
  name: text,
  cost: integer,
  disabled: flag,
  noTraversal: flag,
}

const online = 'exists (select from live_presence where live_presence.router_id = router.id)'

/** A router that identities connect to. */
export const edgeRouter = defineEntity({
  kind: 'edge-routers',
  singular: 'edgeRouter',
  owner: 'sessions',
  called: 'router',
  table: 'router',
  ids: 'short',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    roleAttributes: field.attributes(),
    isTunnelerEnabled: field.bool(),
    cost: field.integer({ min: 0, max: 65535 }),
    noTraversal: field.bool(),
    disabled: field.bool(),
    appData: field.map(),
    isEdge: field.bool({ write: '---', fallback: true, filter: false, hidden: true }),
    enrollmentId: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    isVerified: field.bool({ write: '---' }),
    fingerprint: field.string({ write: '---', nullable: true }),
    certPem: field.string({ write: '---', nullable: true, filter: false }),
    formerFingerprints: field.strings({ write: '---', filter: false, hidden: true }),
    unverifiedFingerprint: field.string({ write: '---', nullable: true, filter: false }),
    unverifiedCertPem: field.string({ write: '---', nullable: true, filter: false }),
  },
  computed: {
    online: { column: online, type: 'bool' },
    connected: { column: online, type: 'bool' },
  },
  links: {
    'edge-router-policies': { to: 'edge-router-policies', answeredBy: 'policy' },
    identities: { to: 'identities', answeredBy: 'policy', unlisted: true },
    'service-edge-router-policies': {
      to: 'service-edge-router-policies',
      answeredBy: 'policy',
      unlisted: true,
    },
    services: { to: 'services', answeredBy: 'policy', unlisted: true },
  },
  shows: {
    always: { ...connection, versionInfo },
    sometimes: { ...routerEnrollmentMembers, fingerprint: text, interfaces: listOf(networkInterface) },
    clients: {
      title: 'currentIdentityEdgeRouterDetail',
      members: ['appData', ...Object.keys(commonRouterMembers)],
    },
  },
  summaryNames: ['routers.edge'],
})

/** The edge routers that a client gets. wire: connected ones first, at most 25; null when there is none. */
export function routersForClients<Router extends { readonly isOnline: boolean }>(
  routers: readonly Router[],
): readonly Router[] | null {
  const first = routers.toSorted((a, b) => Number(b.isOnline) - Number(a.isOnline))
  return first.length > 0 ? first.slice(0, CLIENT_ROUTERS) : null
}
