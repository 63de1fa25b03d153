import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { columnsOf, type Letters, lettersOf, type Schema } from './fields.js'

// Makes captures/fields.json from the published documents:
// node --import tsx test-e2e/read-fields.ts <management API>.yml <field tables>.txt… >test-e2e/captures/fields.json

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly schema: Schema }[]
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly definitions: Readonly<Record<string, Schema>>
}

const [api = '', ...tables] = process.argv.slice(2)
const { paths, definitions } = parse(readFileSync(api, 'utf8')) as Document

const named = (name: string): Schema => definitions[name] ?? {}
const bodyOf = (path: string, method: string): Schema | undefined =>
  paths[path]?.[method]?.parameters?.find((parameter) => parameter.in === 'body')?.schema

/** A kind with variants has a definition for each type that extends the common one. */
function variantsOf(body: Schema | undefined): Readonly<Record<string, Schema>> {
  const builtOn = Object.values(definitions).filter(
    (definition) => body && definition['x-class'] && definition.allOf?.[0]?.$ref === body.$ref,
  )
  return Object.fromEntries(builtOn.map((definition) => [String(definition['x-class']), definition]))
}

function fieldsOf(kind: string): Readonly<Record<string, Letters>> {
  const bodies = [
    bodyOf(`/${kind}`, 'post'),
    bodyOf(`/${kind}/{id}`, 'put'),
    bodyOf(`/${kind}/{id}`, 'patch'),
  ]
  const columns = (schemas: readonly (Schema | undefined)[]) =>
    columnsOf(schemas.map((schema) => schema && lettersOf(schema, named)))
  const variants = bodies.map(variantsOf)
  return {
    [kind]: columns(bodies),
    ...Object.fromEntries(
      Object.keys(variants[0] ?? {}).map((type) => [
        `${kind} ${type}`,
        columns(variants.map((byType) => byType[type])),
      ]),
    ),
  }
}

/** The tables of the documents: rows of members, with a column each for create, replace and patch. */
function tablesIn(text: string): Readonly<Record<string, Letters>> {
  const sections = text.split(/^### /m).slice(1)
  return Object.fromEntries(
    sections.flatMap((section) => {
      const [title = ''] = section.split('\n')
      const [table = ''] = /(^\|.*\n)+/m.exec(section) ?? []
      const rows = table
        .trimEnd()
        .split('\n')
        .map((line) => line.split('|').map((cell) => cell.trim()))
      const [head = []] = rows
      const columns = ['Create', 'Replace', 'Patch'].map((name) => head.indexOf(name))
      if (head[1] !== 'Field' || columns[0] === -1) return []
      const letters = rows
        .slice(2)
        .map((cells) => [cells[1] ?? '', columns.map((at) => cells[at]?.charAt(0) ?? '-').join('')])
      return [[kindOf(title), Object.fromEntries(letters) as Letters]]
    }),
  )
}

function kindOf(title: string): string {
  const words = /\(([A-Z]+)\)/.exec(title)?.[1] ?? title.replace(/ \(.*/, '')
  return `${words.toLowerCase().replaceAll(' ', '-')}s`.replace(/ys$/, 'ies')
}

const kinds = Object.keys(paths)
  .filter((path) => /^\/[\w-]+$/.test(path) && bodyOf(path, 'post') && paths[`${path}/{id}`])
  .map((path) => path.slice(1))
const fields = Object.assign({}, ...kinds.map(fieldsOf)) as Record<string, Letters>

for (const [kind, letters] of tables.flatMap((path) => Object.entries(tablesIn(readFileSync(path, 'utf8')))))
  for (const [name, fromTable] of Object.entries(letters)) {
    const published = Object.keys(fields)
      .filter((key) => key.split(' ')[0] === kind)
      .map((key) => fields[key]?.[name])
    if (!published.includes(fromTable))
      throw new Error(`${kind} ${name}: ${fromTable} in the tables, ${published} in the document`)
  }
process.stdout.write(`${JSON.stringify(fields, undefined, 2)}\n`)
