import type { Entity, Field } from '@overlay/model'
import {
  type Context,
  type EntityServiceService,
  Fault,
  type Methods,
  notFound,
  type Written,
} from '@overlay/rpc'
import sql from 'sql-template-tag'
import type { RowChange } from '../change-log/change-log.js'
import { onlyRow, type Tx } from '../postgres/database.js'
import { bodyIn, changedValues, createdValues, updatedValues } from './body.js'
import { checkRoles, checkWords } from './check.js'
import { uniqueFault } from './conflict.js'
import { newId } from './ids.js'
import { lockRow, required, type Store } from './kind.js'
import { type Exists, membersOf, withReferences } from './references.js'
import { type AnyRow, rowOf, tableOf, updateSql } from './row.js'
import { changeOf, insertRow } from './row-changes.js'

type Writes = Pick<Methods<EntityServiceService>, 'create' | 'update' | 'delete'>

/** The uniform operations that write rows, each with its audit row in one transaction. */
export function writes(store: Store): Writes {
  const { kindOf } = store
  return {
    async create({ kind, json, id: chosen }, context) {
      const { entity, seams } = kindOf(kind)
      const { values, tags } = createdValues(entity, bodyIn(json))
      const names = new Set(Object.keys(entity.fields))
      checkWords(entity, values, names)
      const id = chosen ?? newId(entity.ids)
      const references = membersOf(entity, values, names)
      return written(store, { entity, id, references }, context, async (tx, also, exists) => {
        checkRoles(entity, values, names, exists)
        const writing = { context, also, exists, isWritten: () => true }
        const derived = await seams.writing?.(tx, { ...values, id }, null, writing)
        return insertRow(tx, entity, id, { ...values, ...derived }, tags)
      })
    },

    async update({ ref, json, mask }, context) {
      const { kind, id } = required(ref)
      const found = kindOf(kind)
      const { entity, seams } = found
      const body = bodyIn(json)
      const changed = changedValues(entity, body, new Set(mask))
      const references = membersOf(entity, changed.values, changed.names).filter(([{ fixed }]) => !fixed)
      return written(store, { entity, id, references }, context, async (tx, also, exists) => {
        const before = await lockRow(tx, found, id, context)
        if (!before) throw notFound(entity.called, id)
        refuseSystem(entity, before, 'update')
        const next = updatedValues(entity, before, body, new Set(mask))
        checkWords(entity, next.values, next.names)
        checkRoles(entity, next.values, next.names, exists)
        const writing = { context, also, exists, isWritten: (name: string) => next.names.has(name) }
        const derived = await seams.writing?.(tx, { ...next.values, id }, before, writing)
        const touched = new Set([...next.names, ...Object.keys(derived ?? {})])
        const values = { ...next.values, ...derived }
        const { rows } = await tx.query(updateSql(entity, id, values, next.tags, touched))
        return changeOf(entity, id, before, rowOf(entity, onlyRow(rows)))
      })
    },

    async delete({ kind, id }, context) {
      const found = kindOf(kind)
      const { entity, seams } = found
      return written(store, { entity, id, references: [] }, context, async (tx, also) => {
        const before = await lockRow(tx, found, id, context)
        if (!before) throw notFound(entity.calledOnDelete, id)
        if (!entity.systemDeletable) refuseSystem(entity, before, 'delete')
        await seams.deleting?.(tx, before, { also })
        await tx.query(sql`delete from ${tableOf(entity)} where id = ${id}`)
        return changeOf(entity, id, before, null)
      })
    },
  }
}

function refuseSystem(entity: Entity, row: AnyRow, verb: 'update' | 'delete'): void {
  if (!row.isSystem) return
  const code = verb === 'update' ? 'ENTITY_CAN_NOT_BE_UPDATED' : 'ENTITY_CAN_NOT_BE_DELETED'
  throw new Fault(code, `cannot ${verb} system ${entity.singular} in a non-system context (id=${row.id})`)
}

type Step = (tx: Tx, also: (change: RowChange) => void, exists: Exists) => Promise<RowChange>

interface WriteRequest {
  readonly entity: Entity
  readonly id: string
  readonly references: readonly (readonly [Field, unknown])[]
}

async function written(
  store: Store,
  { entity, id, references }: WriteRequest,
  context: Context,
  step: Step,
): Promise<Written> {
  try {
    const { position } = await withReferences(store, references, context, (lock) =>
      store.changeLog.write(context, async (tx) => {
        const exists = await lock(tx)
        const changes: RowChange[] = []
        const change = await step(tx, (change) => changes.push(change), exists)
        return { result: undefined, changes: [...changes, change] }
      }),
    )
    return { id, position }
  } catch (err) {
    throw uniqueFault(entity, err) ?? err
  }
}
