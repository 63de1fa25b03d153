import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** Something that identities dial and bind. */
export const service = defineEntity({
  kind: 'services',
  singular: 'service',
  owner: 'policy',
  followed: true,
  counted: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    encryptionRequired: field.bool({ write: 'R--', filter: false }), // differs: read-only after create
    terminatorStrategy: field.string(),
    maxIdleTimeMillis: field.integer({ filter: false }),
    configs: field.strings({ refs: 'configs' }), // differs: the same one twice counts once
    roleAttributes: field.attributes(),
  },
  links: {
    configs: { to: 'configs', by: 'configs' },
    'edge-routers': { to: 'edge-routers', unlisted: true },
    identities: { to: 'identities', unlisted: true },
    'service-edge-router-policies': { to: 'service-edge-router-policies' },
    'service-policies': { to: 'service-policies' },
    terminators: { to: 'terminators', through: 'service' },
  },
})
