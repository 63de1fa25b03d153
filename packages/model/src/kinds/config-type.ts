import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** The schema of the data of configs, and the name under which services show it. */
export const configType = defineEntity({
  kind: 'config-types',
  singular: 'configType',
  owner: 'policy',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    schema: field.object({ schema: { type: ['object', 'null'] } }),
  },
  computed: { schema: { column: 'schema::text', type: 'string' } },
  links: {
    configs: { to: 'configs', through: 'type', unlisted: true },
  },
})
