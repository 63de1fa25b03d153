import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'

/** What the data of a config must look like, and under which name services show it. */
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
