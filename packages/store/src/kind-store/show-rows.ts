import { memoized } from '@overlay/model'
import type { Perspective } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import type { Sql } from 'sql-template-tag'
import type { Db } from '../postgres/database.js'
import type { Kind } from './kind.js'
import { loadedColumnsOf, membersOf, namesFor } from './loaded-members.js'
import { clientRenderingOf, type Rendering, renderingOf } from './rendering.js'
import type { AnyRow } from './row.js'
import type { Names, ViewRequest } from './seams.js'

/** What is selected of rows to show them. Of one kind and perspective, the same array. */
export const shownOf = (kind: Kind, perspective: Perspective | undefined): readonly Sql[] =>
  shownColumnsOf(renderingFor(kind, perspective))

const shownColumnsOf = memoized((rendering: Rendering): readonly Sql[] => [
  ...rendering.columns,
  ...loadedColumnsOf(rendering.kind).columns,
])

const renderingFor = (kind: Kind, perspective: Perspective | undefined): Rendering =>
  perspective?.asClient ? clientRenderingOf(kind) : renderingOf(kind)

const nothingAdded = {}

/** The JSON of rows that were read with the columns of `shownOf`. */
export async function showRows(
  db: Db,
  names: Names,
  kind: Kind,
  stored: readonly QueryResultRow[],
  reading: ViewRequest,
): Promise<readonly Buffer[]> {
  const { entity, seams } = kind
  const { loaded, text } = renderingFor(kind, reading.perspective)
  const rows = stored.map(loadedColumnsOf(kind).rowOf)
  const namesByKind = await namesFor(entity, loaded, rows, names, reading.context)
  const views = (await seams.view?.(db, rows, reading)) ?? []
  return stored.map((one, i) => {
    const added = (views[i] ?? nothingAdded) as Readonly<Record<string, unknown>>
    return Buffer.from(
      text(one, (fields) => membersOf(entity, fields, rows[i] as AnyRow, namesByKind), added),
    )
  })
}
