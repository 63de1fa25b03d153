import { type Change, type ChangeServiceService, type Changes, Fault, type Methods } from '@overlay/rpc'
import type { ChangeLog } from './change-log.js'
import type { Consumer } from './consumer.js'
import { isFull, sendable } from './message.js'

/** All rows of a followed kind, or only those with these ids, in the shape that its changes have. */
export type LoadRows = (
  ids?: readonly string[],
) => AsyncIterable<{ readonly id: string; readonly json: object }>
export type Loaders = Readonly<Record<string, LoadRows>>

const MOST_GATHER_MS = 500 // signs of life may not wait longer
const PART_BYTES = 1024 * 1024

/** What a service tells the others about its rows, and about what theirs have done to it. */
export const changeService = (
  changeLog: ChangeLog,
  loaders: Loaders,
  followed: Readonly<Record<string, Pick<Consumer, 'waitFor'>>> = {},
): Methods<ChangeServiceService> => ({
  async *watch({ after, gatherMs, kinds }, { signal }) {
    yield* changeLog.watch(after ?? unknown(), signal, {
      kinds,
      gatherMs: Math.min(gatherMs, MOST_GATHER_MS),
    })
  },

  pull: async ({ after, kinds }) => changeLog.pull(after ?? unknown(), { kinds }),

  head: () => changeLog.head(),

  async reach({ schema, position }, { signal }) {
    if (position) await followed[schema]?.waitFor(position, signal) // not followed: nothing to wait for
    return {}
  },

  async *load({ kinds }, { signal }) {
    const upto = await changeLog.head()
    const message = (changes: readonly Change[], more: boolean): Changes => ({
      ...sendable(changes),
      upto,
      more,
      after: undefined,
      ageMs: 0,
    })
    yield message([], true)
    for (const kind of kinds)
      for await (const changes of messagesOf(kind, loaders)) {
        if (signal.aborted) return
        yield message(changes, true)
      }
    yield message([], false)
  },

  async *row({ kind, id }, { signal }) {
    for await (const row of rowsOf(kind, loaders)([id])) {
      if (row.id !== id) continue // of a few rows a loader tells all
      const json = Buffer.from(JSON.stringify(row.json))
      for (let from = 0; from < json.length && !signal.aborted; from += PART_BYTES)
        yield { json: json.subarray(from, from + PART_BYTES) }
    }
  },
})

/** The rows of a kind, as many at a time as fit a message. */
async function* messagesOf(kind: string, loaders: Loaders): AsyncIterable<Changes['changes']> {
  let rows: Change[] = []
  let bytes = 0
  for await (const { id, json } of rowsOf(kind, loaders)()) {
    const row = { kind, id, json: Buffer.from(JSON.stringify(json)), atMs: 0, number: 0 }
    rows.push(row)
    bytes += row.json.length
    if (!isFull(rows.length, bytes)) continue
    yield rows
    rows = []
    bytes = 0
  }
  if (rows.length > 0) yield rows
}

function rowsOf(kind: string, loaders: Loaders): LoadRows {
  const rows = loaders[kind]
  if (!rows) throw new Error(`nobody may follow ${kind} here`)
  return rows
}

function unknown(): never {
  throw new Fault('OUT_OF_RANGE')
}
