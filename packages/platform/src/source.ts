import type { ChangeServiceService, Changes, Methods, Position } from '@overlay/rpc'
import { ownContext } from '@overlay/rpc'
import { changeService, type Loaders } from './change-service.js'
import type { History } from './history.js'

/** The history of a schema, as its followers see it. */
export interface Source {
  readonly schema: string
  /** All rows of the kinds. The first message carries the position taken before the load. */
  load(kinds: readonly string[], signal: AbortSignal): AsyncIterable<Changes>
  /**
   * Changes after the position, then new ones; a message each second at least, and no two with changes within
   * `gatherMs`. OUT_OF_RANGE: load anew.
   */
  watch(after: Position, signal: AbortSignal, gatherMs: number): AsyncIterable<Changes>
  /** Changes after the position, as of now. */
  pull(after: Position, signal: AbortSignal): Promise<Changes>
}

/** Another service's. */
export const remoteSource = (schema: string, owner: Methods<ChangeServiceService>): Source => ({
  schema,
  load: (kinds, signal) => owner.load({ kinds: [...kinds] }, ownContext(signal)),
  watch: (after, signal, gatherMs) => owner.watch({ after, gatherMs }, ownContext(signal)),
  pull: (after, signal) => owner.pull({ after, gatherMs: 0 }, ownContext(signal)),
})

/** Our own: what a service keeps in memory of its own rows. */
export const localSource = (history: History, loaders: Loaders): Source =>
  remoteSource(history.db.schema, changeService(history, loaders))
