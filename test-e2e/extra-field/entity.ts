import { defineEntity as define } from '../../packages/model/src/kernel/entity.js'
import { field } from '../../packages/model/src/kernel/field.js'

/** Replaces the `defineEntity` of the model: each kind has an extra field. */
export const defineEntity: typeof define = (declaration) =>
  define({ ...declaration, fields: { ...declaration.fields, extra: field.string() } })
