import { Fault, invalid } from '@overlay/rpc'

/** A position in the audit of all schemas, whose order is time, schema and id. */
export interface Cursor {
  readonly atMs: number
  /** Empty: before the changes of all schemas at this time. */
  readonly schema: string
  readonly id: number
}

/** The part of a cursor that matters to one schema. */
export interface SchemaCursor {
  readonly atMs: number
  readonly id: number
}

/** Negative: `a` is older. */
export const compareCursors = (a: Cursor, b: Cursor): number =>
  a.atMs - b.atMs || compareTexts(a.schema, b.schema) || a.id - b.id

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The same position among the changes of one schema. */
export const cursorIn = (schema: string, cursor: Cursor): SchemaCursor => ({
  atMs: cursor.atMs,
  id: cursor.schema === schema ? cursor.id : schema < cursor.schema ? Number.MAX_SAFE_INTEGER : 0,
})

/** The cursor as clients see it. */
export const formatCursor = ({ atMs, schema, id }: Cursor): string => `${atMs}.${schema}.${id}`

const CURSOR = /^(\d{1,13})\.([a-z]{0,20})\.(\d{1,15})$/

/** @param name of the parameter that has the cursor */
export function parseCursor(name: string, text: string): Cursor {
  const [, atMs, schema = '', id] = CURSOR.exec(text) ?? []
  if (atMs === undefined) throw invalid(name, `${name} must be a cursor of this list`, text)
  return { atMs: Number(atMs), schema, id: Number(id) }
}

const CHANGE_ID = /^([a-z]{1,20})\.(\d{1,15})$/

/** The name of a change to clients. */
export const changeIdOf = (schema: string, id: number): string => `${schema}.${id}`

/** The schema and the row that a name means. Names of another form belong to no change. */
export function changeNamed(text: string): { readonly schema: string; readonly id: number } {
  const [, schema, id] = CHANGE_ID.exec(text) ?? []
  if (schema === undefined) throw unknownChange(text)
  return { schema, id: Number(id) }
}

export const unknownChange = (id: string): Fault => new Fault('NOT_FOUND', `change with id ${id} not found`)
