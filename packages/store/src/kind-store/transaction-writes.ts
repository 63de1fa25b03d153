import type { Entity, RowOf } from '@overlay/model'
import { type Context, notFound, type Written } from '@overlay/rpc'
import sql from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import { onlyRow, type Tx } from '../postgres/database.js'
import { uniqueFault } from './conflict.js'
import { lockRow, type Store } from './kind.js'
import { withReferences } from './references.js'
import { type AnyRow, columnsOf, rowOf, tableOf, updateSql } from './row.js'
import { changeOf, insertRow } from './row-changes.js'
import type { Named, NextRow, WriteRequest } from './write-request.js'

/** Writes a row in a transaction of its own: looks up references, locks them and the row, runs the seams and writes it. */
export const transactionWrites =
  (store: Store) =>
  async (request: WriteRequest, context: Context): Promise<Written> => {
    const { kind, id, members, called, operation, step } = request
    const { entity, seams } = kind
    try {
      const { position } = await withReferences(store, members, context, (lock) =>
        store.changeLog.write(context, async (tx) => {
          const exists = await lock(tx)
          const before = operation === 'create' ? null : await lockRow(tx, kind, id, context)
          if (before === undefined) throw notFound(called, id)
          const changes: RowChange[] = []
          const also = (change: RowChange): void => void changes.push(change)
          const next = await step(tx, before, { context, also, exists, named: namedIn(tx) })
          if (before && !next) await seams.deleting?.(tx, before, { also })
          return { result: undefined, changes: [...changes, await change(tx, entity, id, before, next)] }
        }),
      )
      return { id, position }
    } catch (err) {
      throw uniqueFault(entity, err) ?? err
    }
  }

async function change(
  tx: Tx,
  entity: Entity,
  id: string,
  before: AnyRow | null,
  next: NextRow | null,
): Promise<RowChange> {
  if (next && !before) return insertRow(tx, entity, id, next.values, next.tags)
  if (!next) {
    await tx.query(sql`delete from ${tableOf(entity)} where id = ${id}`)
    return changeOf(entity, id, before, null)
  }
  const { rows } = await tx.query(updateSql(entity, id, next.values, next.tags, next.touched))
  return changeOf(entity, id, before, rowOf(entity, onlyRow(rows)))
}

const namedIn =
  (tx: Tx): Named =>
  async <E extends Entity>(entity: E, ids: readonly string[]) => {
    if (ids.length === 0) return new Map()
    const { rows } = await tx.query(
      sql`select ${columnsOf(entity)} from ${tableOf(entity)} where id = any(${ids}) order by id`,
    )
    return new Map(rows.map((row) => [row.id, rowOf(entity, row) as RowOf<E>]))
  }
