import type { Access } from '../http/exchange.js'
import { type Fragment, fragment, htmlPage } from '../http/html.js'
import type { PreparedBody } from '../http/send.js'
import { definition, type Schema, typeOf } from './schema.js'

/** The members of an OpenAPI 3 document that the page shows. */
export interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: Content & { readonly required: boolean }
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly description?: string
  readonly required?: boolean
  readonly schema: Schema
}

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

const levels: Readonly<Record<Access, string>> = {
  none: 'none: open to everybody',
  partial: 'a session, also one whose second factor is outstanding',
  full: 'a session',
  admin: 'the session of an administrator',
}

/**
 * A page that describes an API to people.
 * @param accessOf the level of an operation, by method and path
 */
export function referencePage(
  { info, servers, paths, components }: Document,
  accessOf: (operation: string) => Access,
): PreparedBody {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  )
  const tags = [...new Set(operations.map(({ operation }) => operation.tags[0] ?? ''))].sort()
  const inTag = (tag: string) => operations.filter(({ operation }) => operation.tags[0] === tag)
  return htmlPage(
    info.title,
    fragment`<p>${info.description ?? ''} Version ${info.version}.</p>
<p>Base address: ${servers.map(({ url }) => fragment`<code>${url}</code>`)}. A session is named by its token in the
header <code>zt-session</code>. <a href="/">Overview</a></p>
<nav aria-label="Groups of operations"><ul>
${tags.map((tag) => fragment`<li><a href="#group-${tag}">${tag}</a> (${inTag(tag).length})</li>\n`)}<li><a
href="#schemas">Schemas</a></li>
</ul></nav>
${tags.map((tag) => fragment`<section><h2 id="group-${tag}">${tag}</h2>\n${inTag(tag).map((each) => describe(each, accessOf(each.name)))}</section>\n`)}
<h2 id="schemas">Schemas</h2>
${Object.entries(components.schemas)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([name, schema]) => definition(name, schema))}`,
  )
}

function describe(
  { name, operation }: { readonly name: string; readonly operation: Operation },
  access: Access,
): Fragment {
  const { operationId, summary, parameters, requestBody, responses } = operation
  return fragment`<article>
<h3 id="${operationId}"><code>${name}</code></h3>
<p>${summary.split('. ')[0]}. Permission: ${levels[access]}.</p>
${parameters.length > 0 && parameterTable(parameters)}
${requestBody && fragment`<h4>Body${requestBody.required ? '' : ' (optional)'}</h4><p>${contentOf(requestBody)}</p>\n`}
<h4>Answers</h4>
<ul>
${Object.entries(responses).map(
  ([status, answer]) =>
    fragment`<li><code>${status}</code> ${answer.description}: ${contentOf(answer)}</li>\n`,
)}</ul>
</article>
`
}

const parameterTable = (parameters: readonly Parameter[]): Fragment => fragment`<h4>Parameters</h4>
<div class="scroll"><table>
<thead><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
<tbody>
${parameters.map(
  ({ name, in: place, required, schema, description }) =>
    fragment`<tr><td><code>${name}</code>${required && ' (required)'}</td><td>${place}</td><td>${typeOf(schema)}</td><td>${description ?? ''}</td></tr>\n`,
)}</tbody>
</table></div>
`

const contentOf = ({ content = {} }: Content): Fragment =>
  fragment`${Object.entries(content).map(
    ([type, { schema }], at) => fragment`${at > 0 && '; '}${typeOf(schema)} as <code>${type}</code>`,
  )}`
