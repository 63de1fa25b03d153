import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag } from '../kernel/schema.js'

/** Selects identities, and the edge routers through which they may connect. */
export const edgeRouterPolicy = defineEntity({
  kind: 'edge-router-policies',
  singular: 'edgeRouterPolicy',
  owner: 'policy',
  calledOnDelete: 'edgeRouterPolicies',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    semantic: field.oneOf(['AllOf', 'AnyOf'], { write: 'RRO' }),
    identityRoles: field.roles('identities'),
    edgeRouterRoles: field.roles('edge-routers'),
  },
  shows: { always: { isSystem: flag } },
  published: { body: 'policy' },
})
