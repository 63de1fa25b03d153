import { type Check, type CheckDeps, copies, references } from '@overlay/maintenance'
import { edgeRouter } from '@overlay/model'
import { pushAll } from '@overlay/process/async'
import type { Change } from '@overlay/rpc'
import type { ConsumerDefinition, Effects, RowChange, Source } from '@overlay/store/change-log'
import { payloadDecoder, required } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import {
  removeRouterIdentities,
  removeRouterIdentitiesExcept,
  routersOfIdentities,
  storeRouterIdentity,
} from '../store/router-identities.js'

export const sessionsConsumer = (source: Source): ConsumerDefinition => ({ source, effects: sessionsEffects })

/** A tunneling router acts as an identity with its id and name, which is created and deleted with it. */
export const sessionsEffects: Effects = {
  kinds: [edgeRouter.kind],

  async apply(tx, changes) {
    const own: RowChange[] = []
    for (const change of changes) pushAll(own, await applyRouter(tx, change))
    return own
  },

  async reload(tx, rows) {
    const own = await removeRouterIdentitiesExcept(tx, rows.ids(edgeRouter.kind))
    for await (const page of rows.pages(edgeRouter.kind))
      for (const change of page) pushAll(own, await applyRouter(tx, change))
    return own
  },
}

const edgeRouterIn = payloadDecoder(edgeRouter)

async function applyRouter(tx: Tx, change: Change): Promise<RowChange[]> {
  const { id } = change
  const router = edgeRouterIn(change)
  return router?.isTunnelerEnabled
    ? storeRouterIdentity(tx, id, required(router.name))
    : removeRouterIdentities(tx, [id])
}

export const sessionsChecks = (source: Source, deps: CheckDeps): readonly Check[] => [
  copies(deps, { source, ...sessionsEffects }),
  references(deps, {
    what: 'router identity',
    from: routersOfIdentities,
    to: [edgeRouter.kind],
    repair: removeRouterIdentities,
  }),
]
