import type { Memory } from '@overlay/platform'
import type { Change, Position } from '@overlay/rpc'
import { changes as engineChanges, type FedKind } from '../domain/changes.js'
import type { Effect } from '../domain/effect.js'
import type { State } from '../domain/state.js'
import { decode, isFed } from './rows.js'

export interface Listener {
  /** One change is in the engine; what it led to is valid until the next. `upto` ends its message. */
  followed(effect: Effect, change: Change, upto: Position): void
  /** A message is in the engine. The first one has all rows: nobody has seen anything before. */
  applied(upto: Position, isFirst: boolean): void
}

export interface FedMemory extends Memory {
  readonly names: ReadonlyMap<string, ReadonlyMap<string, string>> // by kind, then by id
}

/**
 * Feeds the rows of one stream to the engine. A load that replaces what is known is fed as the difference, so that
 * nobody's view changes unnoticed.
 */
export function fedMemory(state: State, kinds: readonly FedKind[], listener: Listener): FedMemory {
  const names = new Map(kinds.map((kind) => [kind as string, new Map<string, string>()]))
  let isFirst = true
  let outdated: { readonly kind: string; readonly id: string }[] = []

  function feed<K extends FedKind>(kind: K, change: Change, upto: Position): void {
    const { id } = change
    const decoded = decode(kind, change)
    if (decoded) names.get(kind)?.set(id, decoded.name)
    else names.get(kind)?.delete(id)
    const { put, remove } = engineChanges[kind]
    listener.followed(decoded ? put(state, decoded.row) : remove(state, id), change, upto)
  }

  return {
    kinds,
    names,
    reset() {
      outdated = [...names].flatMap(([kind, ids]) => [...ids.keys()].map((id) => ({ kind, id })))
    },
    apply(changes, upto) {
      const loaded = new Set(outdated.length > 0 ? changes.map(({ kind, id }) => `${kind} ${id}`) : [])
      const gone = outdated.filter(({ kind, id }) => !loaded.has(`${kind} ${id}`))
      outdated = []
      for (const change of changes) if (isFed(change.kind)) feed(change.kind, change, upto)
      const nothing = { json: Buffer.alloc(0), atMs: 0, number: 0 }
      for (const row of gone) if (isFed(row.kind)) feed(row.kind, { ...row, ...nothing }, upto)
      listener.applied(upto, isFirst)
      isFirst = false
    },
  }
}
