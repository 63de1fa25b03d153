import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { listOf } from '../kernel/schema.js'
import { operatingSystemSchema } from './posture-check.js'

/**
 * A type of posture checks, with its operating systems. wire: MFA is a type of posture checks, but not among the rows.
 */
export const postureCheckType = defineEntity({
  kind: 'posture-check-types',
  singular: 'postureCheckType',
  owner: 'policy',
  fields: {
    name: field.string({ write: '---', unique: true }),
    operatingSystems: field.object({ write: '---', schema: listOf(operatingSystemSchema) }),
    version: field.string({ write: '---', nullable: true, filter: false }),
  },
  listType: 'application/json; charset=utf-8',
})
