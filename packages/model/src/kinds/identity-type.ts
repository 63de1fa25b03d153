import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** The type of an identity: Router for the identity of a tunneling router, Default for all others. */
export const identityType = defineEntity({
  kind: 'identity-types',
  singular: 'identityType',
  owner: 'identity',
  fields: { name: field.string({ write: '---', unique: true }) },
})
