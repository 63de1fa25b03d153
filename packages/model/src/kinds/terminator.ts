import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { integer, text } from '../kernel/schema.js'

/** An address behind a router at which a service is reached. */
export const terminator = defineEntity({
  kind: 'terminators',
  singular: 'terminator',
  owner: 'sessions',
  counted: true,
  systemDeletable: true, // created by routers, deleted by admins
  fields: {
    // wire: bodies have `service` and `router` as ids; answers have references of these names, and serviceId and routerId
    service: field.ref('services', { write: 'RRO', column: 'service_id', fixed: true }),
    router: field.ref('transit-routers', { write: 'RRO', column: 'router_id' }),
    binding: field.string({ write: 'RRO' }),
    address: field.string({ write: 'RRO' }),
    identity: field.string({ write: 'O--', symbolName: 'instanceId', column: 'instance_id' }),
    identitySecret: field.string({ write: 'O--', format: 'byte', filter: false, secret: true }),
    hostId: field.string({ write: '---', fabricWrite: 'OOO', hidden: true }),
    cost: field.integer({ min: 0, max: 65535, filter: false }),
    precedence: field.oneOf(['default', 'required', 'failed'], { filter: false }),
  },
  computed: {
    'service.name': {
      column: 'select name from known_service where known_service.id = terminator.service_id',
      type: 'string',
    },
    'router.name': {
      column: 'select name from router where router.id = terminator.router_id',
      type: 'string',
    },
  },
  shows: {
    always: { dynamicCost: integer, routerId: text, serviceId: text },
    fabric: { hostId: text },
    clients: { title: 'terminatorClientDetail', members: ['identity', 'routerId', 'service', 'serviceId'] },
  },
})
