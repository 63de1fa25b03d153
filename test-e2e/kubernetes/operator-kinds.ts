import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Ajv } from 'ajv'
import { parse } from 'yaml'
import { goCommand } from '../interop/go.js'
import { cache } from '../interop/once.js'
import type { KubernetesObject } from './kustomize.js'

const run = promisify(execFile)

/** Go modules of operators, and the files in them that define kinds. */
const published = {
  'github.com/cert-manager/cert-manager@v1.21.2': [
    'deploy/crds/cert-manager.io_certificates.yaml',
    'deploy/crds/cert-manager.io_issuers.yaml',
  ],
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': [
    'example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
  ],
} as const

/** An OpenAPI schema, as far as it is changed here. */
interface Schema {
  readonly additionalProperties?: Schema | boolean
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

/** Lines about where an object differs from the definition of its kind. Members that this does not have are differences. */
export type Compare = (object: KubernetesObject) => readonly string[]

/** Reads the definitions that operators publish, by version and kind: `cert-manager.io/v1 Issuer`. */
export async function readOperatorKinds(): Promise<ReadonlyMap<string, Compare>> {
  const ajv = new Ajv({
    strict: false,
    validateFormats: false,
    allErrors: true,
    code: { regExp: patternOfGo },
  })
  const kinds = new Map<string, Compare>()
  for (const [module, files] of Object.entries(published)) {
    const directory = await downloaded(module)
    for (const file of files) {
      const { spec } = parse(await readFile(join(directory, file), 'utf8'))
      for (const { name, schema } of spec.versions) {
        const fits = ajv.compile(closed(schema.openAPIV3Schema))
        kinds.set(`${spec.group}/${name} ${spec.names.kind}`, (object) => {
          fits(object)
          const { kind, metadata } = object
          return (fits.errors ?? []).map(({ instancePath, message, params: { additionalProperty = '' } }) =>
            `${kind} ${metadata.name}: ${instancePath} ${message} ${additionalProperty}`.trimEnd(),
          )
        })
      }
    }
  }
  return kinds
}

/** Go writes the flag into the pattern. */
const patternOfGo = Object.assign(
  (pattern: string, flags: string) =>
    pattern.includes('(?i)')
      ? new RegExp(pattern.replace('(?i)', ''), `${flags}i`)
      : new RegExp(pattern, flags),
  { code: 'patternOfGo' },
)

/** The folder of a module of Go in the cache of modules. */
async function downloaded(module: string): Promise<string> {
  const { stdout } = await run(await goCommand(), ['mod', 'download', '-json', module], {
    cwd: cache, // outside of a module
    timeout: 300_000,
  })
  return JSON.parse(stdout).Dir
}

/** The same schema without members that it does not name. The API server drops those without a word. */
function closed(schema: Schema): Schema {
  const { properties, items, additionalProperties } = schema
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] || 'additionalProperties' in schema
  return {
    ...schema,
    ...(items && { items: closed(items) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: closed(additionalProperties) }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, closed(one)])),
      ...(!isOpen && { additionalProperties: false }),
    }),
  }
}
