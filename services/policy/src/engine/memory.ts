import { yielder } from '@overlay/platform/async'
import type { Memory } from '@overlay/platform/change-log'
import type { Change, Position } from '@overlay/rpc'
import { changes as engineChanges, type FedKind } from '../domain/changes.js'
import type { Effect } from '../domain/effect.js'
import { putUnknownCheck } from '../domain/entities.js'
import type { State } from '../domain/state.js'
import { decode, isFed } from './decode.js'

export interface Listener {
  /** One change is in the engine; what it led to is valid until the next. `upto` ends its message. */
  followed(effect: Effect, change: Change, upto: Position): void
  /** A message is in the engine, or a whole load. */
  applied(upto: Position): void
  /** A load begins: until `applied`, old rows and new ones are mixed. */
  loading(): void
}

export interface FedMemory extends Memory {
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>> // by kind, then by id
}

/**
 * Feeds the rows of one stream to the engine. A load that replaces what is known is fed row by row over the old ones,
 * and what did not come again is removed at its end, so that nobody's view changes unnoticed.
 */
export function fedMemory(state: State, kinds: readonly FedKind[], listener: Listener): FedMemory {
  const names = new Map(kinds.map((kind) => [kind as string, new Map<string, string>()]))

  function feed<K extends FedKind>(kind: K, change: Change, upto: Position): void {
    const { id } = change
    const decoded = decode(kind, change)
    if (decoded) names.get(kind)?.set(id, decoded.name)
    else names.get(kind)?.delete(id)
    const { put, remove } = engineChanges[kind]
    listener.followed(decoded ? put(state, decoded.row) : remove(state, id), change, upto)
  }

  /** No endpoint passes a check whose row is missing. A missing row of any other kind reduces access. */
  function feedUnknown(change: Change, upto: Position): void {
    const { kind, id } = change
    if (kind === 'posture-checks') listener.followed(putUnknownCheck(state, id), change, upto)
    else if (isFed(kind)) feed(kind, { ...change, json: nothing.json }, upto)
  }

  return {
    kinds,
    names,
    unknown(change, upto) {
      feedUnknown(change, upto)
      listener.applied(upto)
    },
    apply(changes, upto) {
      for (const change of changes) if (isFed(change.kind)) feed(change.kind, change, upto)
      listener.applied(upto)
    },
    load() {
      listener.loading()
      const seen = [...names].map(([kind, ids]) => ({ kind, ids, loaded: new Set<string>() }))
      const mayBeGone = new Map(seen.filter(({ ids }) => ids.size > 0).map((one) => [one.kind, one.loaded]))
      return {
        add(rows, upto) {
          for (const row of rows) {
            mayBeGone.get(row.kind)?.add(row.id)
            if (isFed(row.kind)) feed(row.kind, row, upto)
          }
        },
        unknown(row, upto) {
          mayBeGone.get(row.kind)?.add(row.id)
          feedUnknown(row, upto)
        },
        async end(upto) {
          const breathe = yielder()
          for (const { kind, ids, loaded } of seen) {
            if (!mayBeGone.has(kind) || !isFed(kind)) continue
            for (const id of ids.keys()) {
              if (!loaded.has(id)) feed(kind, { kind, id, ...nothing }, upto)
              await breathe()
            }
          }
          listener.applied(upto)
        },
      }
    },
  }
}

const nothing = { json: Buffer.alloc(0), atMs: 0, number: 0 }
