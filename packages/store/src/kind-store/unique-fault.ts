import { type Entity, snake } from '@overlay/model'
import { type Fault, invalid } from '@overlay/rpc'
import pg from 'pg'
import { columnOf } from './row.js'

const uniqueViolation = '23505'

/** A violated unique constraint as a field error. The names of constraints serve this. */
export function uniqueFault(entity: Entity, err: unknown): Fault | undefined {
  if (!(err instanceof pg.DatabaseError) || err.code !== uniqueViolation) return undefined
  const table = entity.table ?? snake(entity.singular)
  if (err.constraint === `${table}_pkey`) return invalid('id', 'id must be unique')
  for (const [name, field] of Object.entries(entity.fields)) {
    if (err.constraint === `${table}_${columnOf(name, field)}_is_unique`)
      return invalid(name, `${name} must be unique`, /\)=\((.*)\) already exists/.exec(err.detail ?? '')?.[1])
  }
  return undefined
}
