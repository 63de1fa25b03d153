import { type Fragment, fragment } from '../http/html.js'

/** A schema of an OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null

const schemasIn = (value: unknown): readonly Schema[] => (Array.isArray(value) ? value.filter(isSchema) : [])

/** A named schema with its members. Others link to it. */
export const definition = (name: string, schema: Schema): Fragment => fragment`<article>
<h3 id="schema-${name}"><code>${name}</code></h3>
${bodyOf(schema)}
</article>
`

function bodyOf(schema: Schema): Fragment {
  const parts = schemasIn(schema.allOf)
  if (parts.length > 0) return fragment`${parts.map(bodyOf)}`
  if (!hasMembers(schema)) return fragment`<p>${typeOf(schema)}</p>`
  return fragment`<div class="scroll"><table>
<thead><tr><th scope="col">Member</th><th scope="col">Type</th></tr></thead>
<tbody>
${membersOf(schema).map(
  ({ name, isRequired, type }) =>
    fragment`<tr><td><code>${name}</code>${isRequired && ' (required)'}</td><td>${type}</td></tr>\n`,
)}</tbody>
</table></div>`
}

const hasMembers = ({ properties }: Schema): boolean =>
  isSchema(properties) && Object.keys(properties).length > 0

function membersOf({ properties, required }: Schema) {
  const names = new Set(Array.isArray(required) ? required : [])
  return Object.entries(isSchema(properties) ? properties : {}).map(([name, member]) => ({
    name,
    isRequired: names.has(name),
    type: typeOf(isSchema(member) ? member : {}),
  }))
}

/** What values of a schema are, in a line. */
export function typeOf(schema: Schema): Fragment {
  const { $ref, type, items, additionalProperties, oneOf, allOf, nullable, description } = schema
  const notes = [...limitsOf(schema), ...(nullable === true ? ['may be null'] : [])].join(', ')
  const about = typeof description === 'string' ? description : ''
  const around = (text: Fragment): Fragment =>
    fragment`${text}${notes !== '' && ` (${notes})`}${about !== '' && `. ${about}`}`
  if (typeof $ref === 'string') return around(linkTo($ref))
  const choices = schemasIn(oneOf ?? allOf)
  if (choices.length > 0)
    return around(
      fragment`${oneOf ? 'one of ' : ''}${choices.map((each, at) => fragment`${at > 0 && ', '}${typeOf(each)}`)}`,
    )
  if (isSchema(items)) return around(fragment`array of ${typeOf(items)}`)
  if (hasMembers(schema))
    return around(
      fragment`object: ${membersOf(schema).map(
        (member, at) => fragment`${at > 0 && ', '}<code>${member.name}</code> ${member.type}`,
      )}`,
    )
  if (isSchema(additionalProperties))
    return around(fragment`object with values: ${typeOf(additionalProperties)}`)
  return around(fragment`${typeof type === 'string' ? type : 'any value'}`)
}

function linkTo(ref: string): Fragment {
  const name = ref.slice(ref.lastIndexOf('/') + 1)
  return fragment`<a href="#schema-${name}">${name}</a>`
}

const words: Readonly<Record<string, string>> = {
  format: '',
  minLength: 'at least',
  maxLength: 'at most',
  minItems: 'at least',
  maxItems: 'at most',
  minimum: 'from',
  maximum: 'to',
  pattern: 'pattern',
}

const units: Readonly<Record<string, string>> = {
  minLength: ' characters',
  maxLength: ' characters',
  minItems: ' entries',
  maxItems: ' entries',
}

function limitsOf(schema: Schema): string[] {
  const limits = Object.entries(words).flatMap(([keyword, word]) => {
    const value = schema[keyword]
    return typeof value === 'string' || typeof value === 'number'
      ? `${word} ${value}${units[keyword] ?? ''}`.trim()
      : []
  })
  return Array.isArray(schema.enum)
    ? [...limits, schema.enum.map((value) => JSON.stringify(value)).join(' | ')]
    : limits
}
