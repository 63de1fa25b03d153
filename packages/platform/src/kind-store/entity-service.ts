import type { EntityServiceService, Methods } from '@overlay/rpc'
import type { ChangeLog } from '../change-log/change-log.js'
import { type Kind, namesIn, type Store } from './kind.js'
import { reads } from './reads.js'
import type { Names } from './seams.js'
import { writes } from './writes.js'

/** The uniform operations of a service's kinds. `foreign` names what other services own. */
export function entityService(
  changeLog: ChangeLog,
  owned: readonly Kind[],
  foreign: Names,
): Methods<EntityServiceService> {
  const byName = new Map(owned.map((one) => [one.entity.kind, one]))
  const store: Store = {
    changeLog,
    kinds: owned,
    kindOf(name) {
      const found = byName.get(name)
      if (!found) throw new Error(`kind '${name}' is not owned here`)
      return found
    },
    owns: (name) => byName.has(name),
    names: async (name, ids, context) => {
      const own = byName.get(name)
      return own ? namesIn(changeLog.db, own.entity, ids) : foreign(name, ids, context)
    },
  }
  return { ...reads(store), ...writes(store) }
}
