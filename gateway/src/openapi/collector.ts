import type { JsonSchema } from '../http/body.js'
import type { Api } from '../paths.js'
import { definitionNameOf } from './names.js'
import { type alternatives, isVariable } from './variants.js'

/** Schemas with a title stand once, and are referred to. */
export function collector(api: Api, prefix: string, nullable: string, inForm: typeof alternatives) {
  const collected: Record<string, unknown> = {}
  const refer = (schema: JsonSchema): Record<string, unknown> => {
    const { title, ...rest } = schema
    if (typeof title !== 'string') return inline(rest)
    const name = definitionNameOf(api, title)
    if (!(name in collected)) {
      collected[name] = {} // stands before its members are walked
      collected[name] = inline(isVariable(schema) ? inForm(schema, refer) : rest)
    }
    return { $ref: `${prefix}${name}` }
  }
  const all = (schemas: unknown): unknown => (schemas as readonly JsonSchema[]).map(refer)
  const inline = (schema: JsonSchema): Record<string, unknown> => {
    const shown: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'type' && Array.isArray(value)) {
        shown.type = value.find((name) => name !== 'null')
        if (value.includes('null')) shown[nullable] = true
      } else if (keyword === 'properties')
        shown.properties = Object.fromEntries(
          Object.entries(value as Record<string, JsonSchema>).map(([name, member]) => [name, refer(member)]),
        )
      else if (keyword === 'required' && (value as readonly string[]).length === 0) continue
      else if (keyword === 'allOf') shown[keyword] = all(value)
      else if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object'))
        shown[keyword] = refer(value as JsonSchema)
      else shown[keyword] = value
    }
    return shown
  }
  return { collected, refer }
}
