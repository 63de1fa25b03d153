import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

// Makes captures/names.json from the published documents:
// node --import tsx test-e2e/read-names.ts <client API>.yml <management API>.yml >test-e2e/captures/names.json

interface WithSchema {
  readonly schema?: { readonly $ref?: string }
}

interface Operation {
  readonly parameters?: readonly (WithSchema & { readonly in: string; readonly name: string })[]
  readonly responses?: Readonly<Record<string, WithSchema>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** The names of an operation in generated clients: its parameters, its body and its answer. */
function namesOf({ parameters = [], responses = {} }: Operation): object {
  const body = parameters.find((parameter) => parameter.in === 'body')
  const success = Object.entries(responses).find(([status]) => status < '300')?.[1]
  return {
    query: parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name),
    ...(body && { body: [body.name, nameIn(body)] }),
    ...(success?.schema?.$ref && { answer: nameIn(success) }),
  }
}

const nameIn = ({ schema }: WithSchema): string | undefined => schema?.$ref?.split('/').pop()

function documentIn(path: string): object {
  const { paths } = parse(readFileSync(path, 'utf8')) as Document
  return Object.fromEntries(
    Object.entries(paths).flatMap(([path, { parameters: _, ...operations }]) =>
      Object.entries(operations).map(([method, operation]) => [
        `${method.toUpperCase()} ${path}`,
        namesOf(operation),
      ]),
    ),
  )
}

const [client = '', management = ''] = process.argv.slice(2)
process.stdout.write(
  `${JSON.stringify({ client: documentIn(client), management: documentIn(management) }, undefined, 1)}\n`,
)
