import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** A controller with an address of its own. There is none while all replicas share one address. */
export const controller = defineEntity({
  kind: 'controllers',
  singular: 'controller',
  owner: 'sessions',
  fields: {
    name: field.string({ write: '---' }),
    ctrlAddress: field.string({ write: '---', nullable: true }),
    certPem: field.string({ write: '---' }),
    fingerprint: field.string({ write: '---' }),
    isOnline: field.bool({ write: '---' }),
    lastJoinedAt: field.datetime({ write: '---' }),
    apiAddresses: field.object({ write: '---' }),
  },
})
