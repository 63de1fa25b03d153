import { readFileSync } from 'node:fs'
import type { Access } from '../gateway/src/http/exchange.js'

export interface PublishedOperation {
  readonly api: 'client' | 'management' | 'fabric' | 'audit'
  readonly method: string
  readonly path: string
  /** The name that generated clients have for it. */
  readonly id: string
  readonly access: Access
}

/** Operations that the published documents do not have. */
export const added: readonly PublishedOperation[] = [
  { api: 'client', method: 'POST', path: '/enroll/trott', id: 'enrollTrOtt', access: 'none' },
  { api: 'audit', method: 'GET', path: '/changes', id: 'listChanges', access: 'admin' },
  { api: 'audit', method: 'GET', path: '/changes/{id}', id: 'detailChange', access: 'admin' },
  { api: 'audit', method: 'GET', path: '/export', id: 'exportChanges', access: 'admin' },
]

/** All operations that the product may have: published and added ones. */
export const published: readonly PublishedOperation[] = [
  ...(JSON.parse(
    readFileSync(new URL('captures/operations.json', import.meta.url), 'utf8'),
  ) as readonly PublishedOperation[]),
  ...added,
]
