import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { listOf, mapOf, named, object, orNull, reference, text } from '../kernel/schema.js'
import { commonRouterMembers } from './edge-router.js'

const sessionEdgeRouter = named('sessionEdgeRouter', object({ ...commonRouterMembers, urls: mapOf(text) }))

/** The permission of an API session to dial or bind a service. */
export const session = defineEntity({
  kind: 'sessions',
  singular: 'session',
  owner: 'sessions',
  ids: 'cuid',
  followed: true,
  counted: true,
  fields: {
    token: field.string({ write: '---' }),
    type: field.oneOf(['Dial', 'Bind'], { write: '---' }),
    apiSessionId: field.ref('api-sessions', { write: '---', symbolName: 'apiSession' }),
    serviceId: field.ref('services', { write: '---', symbolName: 'service' }),
    identityId: field.string({ write: '---', filter: false }),
    servicePolicies: field.strings({ write: '---', filter: false }),
    postureAtRouters: field.bool({ write: '---', filter: false, hidden: true }),
  },
  links: { 'route-path': { to: 'routers' } },
  shows: {
    always: {
      token: text,
      edgeRouters: orNull(listOf(sessionEdgeRouter)),
      servicePolicies: listOf(reference),
    },
  },
})
