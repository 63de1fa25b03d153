import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** Selects services, and the edge routers that carry them. */
export const serviceEdgeRouterPolicy = defineEntity({
  kind: 'service-edge-router-policies',
  singular: 'serviceEdgeRouterPolicy',
  owner: 'policy',
  calledOnDelete: 'serviceEdgeRouterPolicies',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    semantic: field.oneOf(['AllOf', 'AnyOf'], { write: 'RRO' }),
    serviceRoles: field.roles('services'),
    edgeRouterRoles: field.roles('edge-routers'),
  },
  published: { body: 'policy' },
})
