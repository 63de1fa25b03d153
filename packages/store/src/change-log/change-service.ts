import { type ChangeServiceService, Fault, type Methods } from '@overlay/rpc'
import { MOST_GATHER_MS } from '../limits.js'
import type { ChangeLog } from './change-log.js'
import type { Consumer } from './consumer.js'
import { type Loaders, type LocalOptions, localSource } from './local-source.js'

/** Sends the changes of this service to others, and reports how far it has followed theirs. */
export function changeService(
  changeLog: ChangeLog,
  loaders: Loaders,
  consumers: Readonly<Record<string, Pick<Consumer, 'waitFor'>>> = {},
  options: LocalOptions = {},
): Methods<ChangeServiceService> {
  const source = localSource(changeLog, loaders, options)
  return {
    async *watch({ after, gatherMs, kinds }, { signal }) {
      yield* source.watch(after ?? refuse(), signal, {
        gatherMs: Math.min(gatherMs, MOST_GATHER_MS),
        kinds,
      })
    },

    pull: async ({ after, kinds }, { signal }) => source.pull(after ?? refuse(), signal, kinds),

    head: () => changeLog.head(),

    async reach({ schema, position }, { signal }) {
      if (position) await consumers[schema]?.waitFor(position, signal) // not followed: nothing to wait for
      return {}
    },

    load: ({ kinds }, { signal }) => source.load(kinds, signal),

    async *row({ kind, id }, { signal }) {
      yield { json: await source.row(kind, id, signal) }
    },
  }
}

function refuse(): never {
  throw new Fault('OUT_OF_RANGE')
}
