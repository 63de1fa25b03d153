import { memoized } from '@overlay/model'
import type { Perspective } from '@overlay/rpc'
import type { QueryResultRow } from 'pg'
import sql, { join, type Sql } from 'sql-template-tag'
import type { Db } from '../postgres/database.js'
import { loadedColumnsOf } from './joined-columns.js'
import { type KeptRows, openKeptRows } from './kept-rows.js'
import type { Kind } from './kind.js'
import { membersOf, namesFor } from './render.js'
import { clientRenderingOf, type Rendering, renderingOf } from './rendering.js'
import type { Page } from './repository.js'
import type { AnyRow } from './row.js'
import type { Names, ViewRequest } from './seams.js'
import { rowAlone, version } from './seen-rows.js'
import { rowsById } from './single-rows.js'

export interface ShowRows {
  /** The JSON of rows that were read with the columns of `shownOf`. */
  show(kind: Kind, stored: readonly QueryResultRow[], reading: ViewRequest): Promise<readonly Buffer[]>
  /** A page and the JSON of its rows. `read` reads the page with these columns, twice if rows change meanwhile. */
  showPage(
    kind: Kind,
    read: (columns: readonly Sql[]) => Promise<Page>,
    reading: ViewRequest,
  ): Promise<{ readonly page: Page; readonly shown: readonly Buffer[] }>
}

/** What is selected of rows to show them. */
export const shownOf = (kind: Kind, perspective: Perspective | undefined): readonly Sql[] =>
  formFor(kind, perspective).shown

/** How rows of a kind are read and shown to some clients. */
interface Form {
  readonly rendering: Rendering
  readonly shown: readonly Sql[]
  /** Of kinds whose JSON is kept: what decides what the JSON is, and the same with what is shown. */
  readonly kept?: { readonly deciding: readonly Sql[]; readonly all: readonly Sql[] }
}

const formFor = (kind: Kind, perspective: Perspective | undefined): Form =>
  formsOf(kind)[perspective?.asClient ? 'clients' : 'all']

const formsOf = memoized((kind: Kind) => {
  const { members = {}, memberVersions } = kind.seams
  const loaded = loadedColumnsOf(kind).columns
  const form = (rendering: Rendering): Form => {
    const shown = [...rendering.columns, ...loaded]
    if (!memberVersions) return { rendering, shown }
    // a restored database may repeat versions
    const ofRow = [sql`(select timeline from stream)`, version]
    const ofMembers = Object.values<Sql>({ ...members, ...memberVersions }).filter((one) => one !== rowAlone)
    const versions = sql`id as kept_id, row(${join([...ofRow, ...ofMembers])})::text as versions`
    return { rendering, shown, kept: { deciding: [...loaded, versions], all: [...shown, versions] } }
  }
  return { all: form(renderingOf(kind)), clients: form(clientRenderingOf(kind)) }
})

const nothingAdded = {}

/** A row, and the bytes of its JSON. */
interface Shown {
  readonly id: string
  readonly stored: QueryResultRow
  /** From memory. */
  readonly known: Buffer | undefined
  /** `row` was read with the columns of `shownOf`. */
  write(row: QueryResultRow): Buffer
}

export function showRows(db: Db, names: Names): ShowRows {
  const keptFor = memoized((_: Form) => openKeptRows())

  async function prepare(
    kind: Kind,
    stored: readonly QueryResultRow[],
    reading: ViewRequest,
    keptRows?: KeptRows,
  ): Promise<readonly Shown[]> {
    const { entity, seams } = kind
    const { loaded, text } = formFor(kind, reading.perspective).rendering
    const rows = stored.map(loadedColumnsOf(kind).rowOf)
    const namesByKind = await namesFor(entity, loaded, rows, names, reading.context)
    const views = (await seams.view?.(db, rows, reading)) ?? []
    const prepared = stored.map((one, i): Shown => {
      const row = rows[i] as AnyRow
      const id: string = one.kept_id ?? ''
      const added = (views[i] ?? nothingAdded) as Readonly<Record<string, unknown>>
      const write = (whole: QueryResultRow): Buffer =>
        Buffer.from(text(whole, (fields) => membersOf(entity, fields, row, namesByKind), added))
      if (!keptRows) return { id, stored: one, known: undefined, write }
      const madeOf = JSON.stringify([one.versions, row, added])
      const writeAndKeep = (whole: QueryResultRow): Buffer => {
        const json = write(whole)
        keptRows.keep(id, madeOf, json)
        return json
      }
      return { id, stored: one, known: keptRows.find(id, madeOf), write: writeAndKeep }
    })
    keptRows?.note(prepared.filter(({ known }) => known).length, prepared.length)
    return prepared
  }

  const written = (rows: readonly Shown[]): readonly Buffer[] =>
    rows.map(({ stored, known, write }) => known ?? write(stored))

  /** Only the rows whose JSON is not in memory are read. Undefined: one of them has changed since the page was read. */
  async function writtenOrRead(
    kind: Kind,
    rows: readonly Shown[],
    columns: readonly Sql[],
  ): Promise<readonly Buffer[] | undefined> {
    const unknown = rows.filter(({ known }) => !known)
    if (unknown.length === 0) return written(rows)
    const ids = unknown.map(({ id }) => id)
    const whole = await rowsById(db, kind, columns, ids)
    if (unknown.some(({ id, stored }) => whole.get(id)?.versions !== stored.versions)) return undefined
    return rows.map(({ id, known, write }) => known ?? write(whole.get(id) as QueryResultRow))
  }

  return {
    show: async (kind, stored, reading) => written(await prepare(kind, stored, reading)),

    async showPage(kind, read, reading) {
      const form = formFor(kind, reading.perspective)
      const { kept } = form
      const keptRows = kept && keptFor(form)
      if (kept && keptRows?.areLikely()) {
        const page = await read(kept.deciding)
        const rows = await prepare(kind, page.rows, reading, keptRows)
        const shown = await writtenOrRead(kind, rows, kept.all)
        if (shown) return { page, shown }
      }
      const page = await read(kept?.all ?? form.shown)
      return { page, shown: written(await prepare(kind, page.rows, reading, keptRows)) }
    },
  }
}
