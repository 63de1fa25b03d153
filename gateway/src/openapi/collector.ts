import type { JsonSchema } from '@overlay/model'
import type { Api } from '../http/paths.js'
import { definitionNameOf } from './names.js'
import { type alternatives, isVariable } from './variants.js'

/** Collects schemas with a title and puts references in their place. */
export function collector(api: Api, prefix: string, nullable: string, renderVariable: typeof alternatives) {
  const definitions: Record<string, unknown> = {}
  const refer = (schema: JsonSchema): Record<string, unknown> => {
    const { title, ...rest } = schema
    if (typeof title !== 'string') return inline(rest)
    const name = definitionNameOf(api, title)
    if (!(name in definitions)) {
      definitions[name] = {} // first: a member may refer to it
      definitions[name] = inline(isVariable(schema) ? renderVariable(schema, refer) : rest)
    }
    return { $ref: `${prefix}${name}` }
  }
  const listOfReferences = (schemas: unknown): unknown => (schemas as readonly JsonSchema[]).map(refer)
  const inline = (schema: JsonSchema): Record<string, unknown> => {
    const rendered: Record<string, unknown> = {}
    for (const [keyword, value] of Object.entries(schema)) {
      if (keyword === 'type' && Array.isArray(value)) {
        rendered.type = value.find((name) => name !== 'null')
        if (value.includes('null')) rendered[nullable] = true
      } else if (keyword === 'properties')
        rendered.properties = Object.fromEntries(
          Object.entries(value as Record<string, JsonSchema>).map(([name, member]) => [name, refer(member)]),
        )
      else if (keyword === 'required' && (value as readonly string[]).length === 0) continue
      else if (keyword === 'allOf') rendered[keyword] = listOfReferences(value)
      else if (keyword === 'items' || (keyword === 'additionalProperties' && typeof value === 'object'))
        rendered[keyword] = refer(value as JsonSchema)
      else rendered[keyword] = value
    }
    return rendered
  }
  return { definitions, refer }
}
