import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** A router that carries traffic between others. wire: the list shows those of the edge too. */
export const transitRouter = defineEntity({
  kind: 'transit-routers',
  singular: 'transitRouter',
  owner: 'sessions',
  called: 'router',
  table: 'router',
  ids: 'short',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    cost: field.integer({ min: 0, max: 65535 }),
    noTraversal: field.bool(),
    disabled: field.bool(),
    isEdge: field.bool({ write: '---', filter: false, hidden: true }),
    enrollmentId: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    isVerified: field.bool({ write: '---', filter: false }),
    fingerprint: field.string({ write: '---', nullable: true }),
    unverifiedFingerprint: field.string({ write: '---', nullable: true, filter: false }),
    unverifiedCertPem: field.string({ write: '---', nullable: true, filter: false }),
  },
  links: {},
})
