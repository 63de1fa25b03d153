import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** Settings that clients get with a service. */
export const config = defineEntity({
  kind: 'configs',
  singular: 'config',
  owner: 'policy',
  followed: true,
  counted: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    configTypeId: field.ref('config-types', { write: 'R--', symbolName: 'type' }), // wire: PUT and PATCH ignore it
    data: field.object({ write: 'RRO' }),
  },
  links: {
    services: { to: 'services', through: 'configs', unlisted: true },
  },
})
