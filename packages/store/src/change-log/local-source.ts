import type { Change, Changes } from '@overlay/rpc'
import type { ChangeLog } from './change-log.js'
import { isFull } from './message-size.js'
import type { Source } from './source.js'

/** All rows of a followed kind, or only those with these ids, in the shape that its changes have. */
export type LoadRows = (
  ids?: readonly string[],
) => AsyncIterable<{ readonly id: string; readonly json: object }>
export type Loaders = Readonly<Record<string, LoadRows>>

export interface LocalOptions {
  /**
   * Kinds with secrets. Their change rows have no content: rows are loaded when a message is sent, and only followers
   * that name the kind receive them.
   */
  readonly confidential?: readonly string[]
}

/** The change log of this service: for its own memory, and for other services by way of the change service. */
export const localSource = (
  changeLog: ChangeLog,
  loaders: Loaders,
  { confidential = [] }: LocalOptions = {},
): Source => ({
  schema: changeLog.db.schema,

  async *load(kinds, signal) {
    const upto = await changeLog.head()
    const message = (changes: readonly Change[], more: boolean): Changes => ({
      changes: [...changes],
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

  async *watch(after, signal, options) {
    for await (const message of changeLog.watch(after, signal, options))
      yield await withSecrets(message, options.kinds, confidential, loaders)
  },

  async pull(after, _signal, kinds) {
    return withSecrets(await changeLog.pull(after, { kinds }), kinds, confidential, loaders)
  },

  async row(kind, id) {
    // a loader may read more rows than it is asked for
    for await (const row of rowsOf(kind, loaders)([id])) if (row.id === id) return bytesOf(row.json)
    return Buffer.alloc(0)
  },
})

/**
 * The message with the present rows of confidential kinds, or without their changes if the follower has not named the
 * kind. A row that does not exist any more is sent as deleted: the change that deleted it follows.
 */
async function withSecrets(
  message: Changes,
  kinds: readonly string[],
  confidential: readonly string[],
  loaders: Loaders,
): Promise<Changes> {
  const isSecret = ({ kind }: Change): boolean => confidential.includes(kind)
  if (!message.changes.some(isSecret)) return message
  const present = new Map<string, Buffer>()
  for (const kind of confidential.filter((kind) => kinds.includes(kind))) {
    const ofKind = message.changes.filter((change) => change.kind === kind && change.json.length > 0)
    const ids = [...new Set(ofKind.map(({ id }) => id))]
    if (ids.length === 0) continue
    for await (const { id, json } of rowsOf(kind, loaders)(ids)) present.set(`${kind} ${id}`, bytesOf(json))
  }
  const changes = message.changes.flatMap((change) => {
    if (!isSecret(change)) return [change]
    if (!kinds.includes(change.kind)) return []
    return [{ ...change, json: present.get(`${change.kind} ${change.id}`) ?? Buffer.alloc(0) }]
  })
  return { ...message, changes }
}

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
