import { type ChangeServiceService, Fault, type Methods } from '@overlay/rpc'
import type { ChangeLog } from './change-log.js'
import type { Consumer } from './consumer.js'
import { type Loaders, localSource } from './local-source.js'

const MOST_GATHER_MS = 500 // signs of life may not wait longer
const PART_BYTES = 1024 * 1024

/** What a service tells the others about its rows, and about what theirs have done to it. */
export function changeService(
  changeLog: ChangeLog,
  loaders: Loaders,
  followed: Readonly<Record<string, Pick<Consumer, 'waitFor'>>> = {},
): Methods<ChangeServiceService> {
  const source = localSource(changeLog, loaders)
  return {
    async *watch({ after, gatherMs, kinds }, { signal }) {
      yield* source.watch(after ?? unknown(), signal, Math.min(gatherMs, MOST_GATHER_MS), kinds)
    },

    pull: async ({ after, kinds }, { signal }) => source.pull(after ?? unknown(), signal, kinds),

    head: () => changeLog.head(),

    async reach({ schema, position }, { signal }) {
      if (position) await followed[schema]?.waitFor(position, signal) // not followed: nothing to wait for
      return {}
    },

    load: ({ kinds }, { signal }) => source.load(kinds, signal),

    async *row({ kind, id }, { signal }) {
      const json = await source.row(kind, id, signal)
      for (let from = 0; from < json.length && !signal.aborted; from += PART_BYTES)
        yield { json: json.subarray(from, from + PART_BYTES) }
    },
  }
}

function unknown(): never {
  throw new Fault('OUT_OF_RANGE')
}
