import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

const online = 'exists (select from presence where presence.router_id = router.id)'

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
    unverifiedFingerprint: field.string({ write: '---', nullable: true, filter: false }),
    unverifiedCertPem: field.string({ write: '---', nullable: true, filter: false }),
  },
  computed: {
    online: { column: online, type: 'bool' },
    connected: { column: online, type: 'bool' },
  },
  links: {
    'edge-router-policies': { to: 'edge-router-policies', knownTo: 'policy' },
    identities: { to: 'identities', knownTo: 'policy', unlisted: true },
    'service-edge-router-policies': {
      to: 'service-edge-router-policies',
      knownTo: 'policy',
      unlisted: true,
    },
    services: { to: 'services', knownTo: 'policy', unlisted: true },
  },
  clientSees: [
    'appData',
    'cost',
    'disabled',
    'hostname',
    'isOnline',
    'name',
    'noTraversal',
    'supportedProtocols',
    'syncStatus',
  ],
})
