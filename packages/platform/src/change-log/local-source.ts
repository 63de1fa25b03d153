import type { Change, Changes } from '@overlay/rpc'
import type { ChangeLog } from './change-log.js'
import { isFull, sendable } from './message.js'
import type { Source } from './source.js'

/** All rows of a followed kind, or only those with these ids, in the shape that its changes have. */
export type LoadRows = (
  ids?: readonly string[],
) => AsyncIterable<{ readonly id: string; readonly json: object }>
export type Loaders = Readonly<Record<string, LoadRows>>

/** The change log of this service: for its own memory, and for other services by way of the change service. */
export const localSource = (changeLog: ChangeLog, loaders: Loaders): Source => ({
  schema: changeLog.db.schema,

  async *load(kinds, signal) {
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

  watch: (after, signal, gatherMs, kinds) => changeLog.watch(after, signal, { gatherMs, kinds }),

  pull: (after, _signal, kinds) => changeLog.pull(after, { kinds }),

  async row(kind, id) {
    // a loader may read more rows than it is asked for
    for await (const row of rowsOf(kind, loaders)([id])) if (row.id === id) return bytesOf(row.json)
    return Buffer.alloc(0)
  },
})

/** The rows of a kind, in portions that fit a message. */
async function* messagesOf(kind: string, loaders: Loaders): AsyncIterable<Changes['changes']> {
  let rows: Change[] = []
  let bytes = 0
  for await (const { id, json } of rowsOf(kind, loaders)()) {
    const row = { kind, id, json: bytesOf(json), atMs: 0, number: 0 }
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
  if (!rows) throw new Error(`${kind} cannot be followed here`)
  return rows
}

const bytesOf = (json: object): Buffer => Buffer.from(JSON.stringify(json))
