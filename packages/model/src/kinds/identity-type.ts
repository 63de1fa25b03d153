import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** What an identity is to the system: everybody is Default, what a tunneling router makes for itself is Router. */
export const identityType = defineEntity({
  kind: 'identity-types',
  singular: 'identityType',
  owner: 'identity',
  fields: { name: field.string({ write: '---', unique: true }) },
  links: {},
})
