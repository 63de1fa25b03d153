import type { ChangeServiceService, Changes, Methods, Position } from '@overlay/rpc'
import { type Change, ownContext } from '@overlay/rpc'
import type { WatchOptions } from './change-log.js'

/** The change log of a schema, for its followers. */
export interface Source {
  readonly schema: string
  /** All rows of the kinds. The first message carries the position taken before the load. */
  load(kinds: readonly string[], signal: AbortSignal): AsyncIterable<Changes>
  /**
   * Changes of these kinds after the position, then new ones: at most one message with changes in `gatherMs`, and a
   * heartbeat each second. OUT_OF_RANGE: holders must reload.
   */
  watch(after: Position, signal: AbortSignal, options: WatchOptions): AsyncIterable<Changes>
  /** Changes after the position, as of now. */
  pull(after: Position, signal: AbortSignal, kinds: readonly string[]): Promise<Changes>
  /** The current row as JSON, empty if it is deleted. For rows that cannot be applied as they were sent. */
  row(kind: string, id: string, signal: AbortSignal): Promise<Buffer>
}

/** The row does not exist any more. */
export const isDeleted = ({ json }: Pick<Change, 'json'>): boolean => json.length === 0

/** The ids of the deleted rows of a kind. */
export const deletedIds = (changes: readonly Change[], kind: string): string[] =>
  changes.filter((change) => change.kind === kind && isDeleted(change)).map(({ id }) => id)

/** The change log of another service. */
export const remoteSource = (schema: string, owner: Methods<ChangeServiceService>): Source => ({
  schema,
  load: (kinds, signal) => owner.load({ kinds: [...kinds] }, ownContext(signal)),
  watch: (after, signal, { gatherMs, kinds }) =>
    owner.watch({ after, gatherMs, kinds: [...kinds] }, ownContext(signal)),
  pull: (after, signal, kinds) => owner.pull({ after, gatherMs: 0, kinds: [...kinds] }, ownContext(signal)),
  async row(kind, id, signal) {
    const parts: Uint8Array[] = []
    for await (const { json } of owner.row({ kind, id }, ownContext(signal))) parts.push(json)
    return Buffer.concat(parts)
  },
})
