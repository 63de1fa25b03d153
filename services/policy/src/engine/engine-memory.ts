import { yielder } from '@overlay/process/async'
import type { Change, Position } from '@overlay/rpc'
import type { Memory } from '@overlay/store/change-log'
import type { Effect } from '../domain/effect.js'
import { putUnknownCheck } from '../domain/entity-mutators.js'
import { mutators } from '../domain/mutators.js'
import type { EngineKind } from '../domain/rows.js'
import type { State } from '../domain/state.js'
import { isTouchedKind, touch } from '../domain/touched.js'
import { decodeRow, isEngineKind } from './decode-row.js'

export interface Listener {
  /** One change is in the engine. Its effect is valid until the next change. `upto` is the position of its message. */
  changed(effect: Effect, change: Change, upto: Position): void
  /** A message is in the engine, or a whole load. */
  applied(upto: Position): void
  /** A load begins: until `applied`, old rows and new ones are mixed. */
  loading(): void
}

export interface EngineMemory extends Memory {
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>> // by kind, then by id
}

/**
 * Writes the rows of one change log to the engine. A load writes row by row over the old ones, and removes at its end what
 * it did not contain, so that the listener is called for every change.
 */
export function openEngineMemory(
  state: State,
  kinds: readonly EngineKind[],
  listener: Listener,
): EngineMemory {
  const names = new Map(kinds.map((kind) => [kind as string, new Map<string, string>()]))

  function write<K extends EngineKind>(kind: K, change: Change, upto: Position): void {
    const { id } = change
    const decoded = decodeRow(kind, change)
    const ofKind = names.get(kind)
    if (decoded && isTouchedKind(kind) && ofKind?.has(id) && ofKind.get(id) !== decoded.name)
      state.touches.row(kind, id, touch.written)
    if (decoded) ofKind?.set(id, decoded.name)
    else ofKind?.delete(id)
    const { put, remove } = mutators[kind]
    listener.changed(decoded ? put(state, decoded.row) : remove(state, id), change, upto)
  }

  /** No endpoint passes a check whose row is missing. A missing row of any other kind reduces access. */
  function writeUnknown(change: Change, upto: Position): void {
    const { kind, id } = change
    if (kind === 'posture-checks') {
      const ofKind = names.get(kind)
      if (!ofKind?.has(id)) ofKind?.set(id, '') // a load removes the check if its row is deleted
      listener.changed(putUnknownCheck(state, id), change, upto)
    } else if (isEngineKind(kind)) write(kind, { ...change, json: deleted.json }, upto)
  }

  return {
    name: 'policy memory',
    kinds,
    names,
    unknown(change, upto) {
      writeUnknown(change, upto)
      listener.applied(upto)
    },
    apply(changes, upto) {
      for (const change of changes) if (isEngineKind(change.kind)) write(change.kind, change, upto)
      listener.applied(upto)
    },
    load() {
      listener.loading()
      const stale = kinds.flatMap((kind) => {
        const ids = names.get(kind)
        return ids && ids.size > 0 ? [{ kind, ids, loaded: new Set<string>() }] : []
      })
      const loaded = new Map(stale.map((one) => [one.kind as string, one.loaded]))
      return {
        add(rows, upto) {
          for (const row of rows) {
            loaded.get(row.kind)?.add(row.id)
            if (isEngineKind(row.kind)) write(row.kind, row, upto)
          }
        },
        unknown(row, upto) {
          loaded.get(row.kind)?.add(row.id)
          writeUnknown(row, upto)
        },
        async end(upto) {
          const yieldNow = yielder()
          for (const { kind, ids, loaded } of stale)
            for (const id of ids.keys()) {
              if (!loaded.has(id)) write(kind, { kind, id, ...deleted }, upto)
              await yieldNow()
            }
          listener.applied(upto)
        },
      }
    },
  }
}

const deleted = { json: Buffer.alloc(0), atMs: 0, number: 0 }
