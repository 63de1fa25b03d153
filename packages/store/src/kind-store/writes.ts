import type { Entity } from '@overlay/model'
import { type EntityServiceService, Fault, type Methods } from '@overlay/rpc'
import { bodyIn, changedValues, createdValues, updatedValues } from './body.js'
import { checkRoles, checkWords } from './check.js'
import { newId } from './ids.js'
import { required, type Store } from './kind.js'
import { membersOf } from './references.js'
import type { AnyRow } from './row.js'
import { rowWriter, type WriteRequest } from './write-rows.js'

type Writes = Pick<Methods<EntityServiceService>, 'create' | 'update' | 'delete'>

/** The uniform operations that write rows. */
export function writes(store: Store): Writes {
  const { kindOf } = store
  const write = rowWriter(store)

  return {
    async create({ kind, json, id: chosen }, context) {
      const found = kindOf(kind)
      const { entity, seams } = found
      const { values, tags } = createdValues(entity, bodyIn(json))
      const touched = new Set(Object.keys(entity.fields))
      checkWords(entity, values, touched)
      const id = chosen ?? newId(entity.ids)
      const request: WriteRequest = {
        operation: 'create',
        kind: found,
        id,
        members: membersOf(entity, values, touched),
        called: entity.called,
        bytes: json.length,
        async step(tx, _before, writing) {
          checkRoles(entity, values, touched, writing.exists)
          const isWritten = () => true
          const derived = await seams.writing?.(tx, { ...values, id }, null, { ...writing, isWritten })
          return { values: derived ? { ...values, ...derived } : values, tags }
        },
      }
      return write(request, context)
    },

    async update({ ref, json, mask }, context) {
      const { kind, id } = required(ref)
      const found = kindOf(kind)
      const { entity, seams } = found
      const body = bodyIn(json)
      const names = new Set(mask)
      const changed = changedValues(entity, body, names)
      const request: WriteRequest = {
        operation: 'update',
        kind: found,
        id,
        members: membersOf(entity, changed.values, changed.names).filter(([{ fixed }]) => !fixed),
        called: entity.called,
        bytes: json.length,
        async step(tx, before, writing) {
          if (!before) throw new Error('an update without a row')
          refuseSystem(entity, before, 'update')
          const next = updatedValues(entity, before, body, names)
          checkWords(entity, next.values, next.names)
          checkRoles(entity, next.values, next.names, writing.exists)
          const isWritten = (name: string) => next.names.has(name)
          const derived = await seams.writing?.(tx, { ...next.values, id }, before, { ...writing, isWritten })
          return { values: { ...next.values, ...derived }, tags: next.tags }
        },
      }
      return write(request, context)
    },

    async delete({ kind, id }, context) {
      const found = kindOf(kind)
      const { entity } = found
      const request: WriteRequest = {
        operation: 'delete',
        kind: found,
        id,
        members: [],
        called: entity.calledOnDelete,
        bytes: 0,
        async step(_tx, before) {
          if (!before) throw new Error('a delete without a row')
          if (!entity.systemDeletable) refuseSystem(entity, before, 'delete')
          return null
        },
      }
      return write(request, context)
    },
  }
}

function refuseSystem(entity: Entity, row: AnyRow, verb: 'update' | 'delete'): void {
  if (!row.isSystem) return
  const code = verb === 'update' ? 'ENTITY_CAN_NOT_BE_UPDATED' : 'ENTITY_CAN_NOT_BE_DELETED'
  throw new Fault(code, `cannot ${verb} system ${entity.singular} in a non-system context (id=${row.id})`)
}
