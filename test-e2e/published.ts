import { readFileSync } from 'node:fs'
import { audit, client, fabric, management } from '../gateway/src/api/operations.js'
import type { Access } from '../gateway/src/http/exchange.js'
import { operationIdOf } from '../gateway/src/openapi/names.js'

export interface PublishedOperation {
  readonly api: 'client' | 'management' | 'fabric' | 'audit'
  readonly method: string
  readonly path: string
  /** The name that generated clients have for it. */
  readonly id: string
  readonly access: Access
}

/** The operations of the published documents, as recorded. */
export const recorded = JSON.parse(
  readFileSync(new URL('captures/operations.json', import.meta.url), 'utf8'),
) as readonly PublishedOperation[]

const tables: Readonly<Record<PublishedOperation['api'], Readonly<Record<string, Access>>>> = {
  client,
  management,
  fabric,
  audit,
}

/** Operations of the product that the published documents do not have. */
export const added: readonly PublishedOperation[] = Object.entries(tables).flatMap(([api, table]) =>
  Object.entries(table)
    .map(([operation, access]) => {
      const [method = '', path = ''] = operation.split(' ')
      return { api: api as PublishedOperation['api'], method, path, id: operationIdOf(operation), access }
    })
    .filter(({ method, path }) =>
      recorded.every((o) => o.api !== api || o.method !== method || o.path !== path),
    ),
)

/** All operations of the product. */
export const operations: readonly PublishedOperation[] = [...recorded, ...added]
