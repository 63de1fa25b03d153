import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** Grants the identities it selects dial or bind access to the services it selects. */
export const servicePolicy = defineEntity({
  kind: 'service-policies',
  singular: 'servicePolicy',
  owner: 'policy',
  calledOnDelete: 'servicePolicies',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    // wire: filters compare the number; the documents have a third word, which is refused
    type: field.coded({ Dial: 1, Bind: 2, Invalid: 0 }, { write: 'RRO' }),
    semantic: field.oneOf(['AllOf', 'AnyOf'], { write: 'RRO' }),
    identityRoles: field.roles('identities'),
    serviceRoles: field.roles('services'),
    postureCheckRoles: field.roles('posture-checks'),
  },
  // The columns are placeholders: the owner's filter seam replaces conditions on these sets.
  computed: {
    identities: { column: "'{}'::text[]", type: 'strings' },
    services: { column: "'{}'::text[]", type: 'strings' },
  },
  published: { body: 'policy' },
})
