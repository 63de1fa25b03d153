import { Fault, invalid } from '@overlay/rpc'

/** A place in the audit of all schemas, whose order is time, schema and id. */
export interface Place {
  readonly atMs: number
  /** Empty: before the changes of all schemas at this time. */
  readonly schema: string
  readonly id: number
}

/** The part of a place that matters to one schema. */
export interface SchemaPlace {
  readonly atMs: number
  readonly id: number
}

/** Negative: `a` is older. */
export const comparePlaces = (a: Place, b: Place): number =>
  a.atMs - b.atMs || compareTexts(a.schema, b.schema) || a.id - b.id

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The same place among the changes of one schema. */
export const placeIn = (schema: string, place: Place): SchemaPlace => ({
  atMs: place.atMs,
  id: place.schema === schema ? place.id : schema < place.schema ? Number.MAX_SAFE_INTEGER : 0,
})

/** Names a place to clients. */
export const cursorOf = ({ atMs, schema, id }: Place): string => `${atMs}.${schema}.${id}`

const CURSOR = /^(\d{1,13})\.([a-z]{0,20})\.(\d{1,15})$/

/** @param name of the parameter that has the cursor */
export function placeOf(name: string, cursor: string): Place {
  const [, atMs, schema = '', id] = CURSOR.exec(cursor) ?? []
  if (atMs === undefined) throw invalid(name, `${name} must be a cursor of this list`, cursor)
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
