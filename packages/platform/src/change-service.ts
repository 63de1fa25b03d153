import { type Change, type ChangeServiceService, type Changes, Fault, type Methods } from '@overlay/rpc'
import type { Following } from './follow.js'
import type { History } from './history.js'
import { isFull } from './message.js'

/** All rows of a followed kind, in the shape that its changes have. */
export type Loaders = Readonly<
  Record<string, () => AsyncIterable<{ readonly id: string; readonly json: object }>>
>

const MOST_GATHER_MS = 500 // a sign of life is due each second

/** What a service tells the others about its rows, and about what theirs have done to it. */
export const changeService = (
  history: History,
  loaders: Loaders,
  followed: Readonly<Record<string, Pick<Following, 'reach'>>> = {},
): Methods<ChangeServiceService> => ({
  async *watch({ after, gatherMs }, { signal }) {
    yield* history.watch(after ?? unknown(), signal, Math.min(gatherMs, MOST_GATHER_MS))
  },

  pull: async ({ after }) => history.pull(after ?? unknown()),

  head: () => history.head(),

  async reach({ schema, position }, { signal }) {
    const following = followed[schema]
    if (!following) throw new Error(`schema '${schema}' is not followed here`)
    if (position) await following.reach(position, signal)
    return {}
  },

  async *load({ kinds }, { signal }) {
    const upto = await history.head()
    yield { upto, changes: [], more: true }
    for (const kind of kinds)
      for await (const changes of messagesOf(kind, loaders)) {
        if (signal.aborted) return
        yield { upto, changes, more: true }
      }
    yield { upto, changes: [], more: false }
  },
})

/** The rows of a kind, as many at a time as fit a message. */
async function* messagesOf(kind: string, loaders: Loaders): AsyncIterable<Changes['changes']> {
  const rowsOf = loaders[kind]
  if (!rowsOf) throw new Error(`nobody may follow ${kind} here`)
  let rows: Change[] = []
  let bytes = 0
  for await (const { id, json } of rowsOf()) {
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

function unknown(): never {
  throw new Fault('OUT_OF_RANGE')
}
