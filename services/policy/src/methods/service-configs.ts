import { type Context, type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import { type RowChange, writeChanges } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import type { Engine } from '../engine/engine.js'
import type { Deps } from './method-deps.js'

/** NOT_FOUND: memory, brought up to date, does not have the identity. */
export async function ensureIdentity(engine: Engine, identityId: string, context: Context): Promise<void> {
  await engine.bestEffort(engine.catchUp(context))
  if (!engine.namesOf('identities').has(identityId)) throw notFound('identity', identityId)
}

type Write = Methods<PolicyServiceService>['putServiceConfigs' | 'removeServiceConfigs']

/** Changes the configs that an identity uses in place of those of services. */
export const writeServiceConfigs =
  (
    { changeLog, engine }: Deps,
    work: (
      tx: Tx,
      ...request: [identityId: string, configs: Parameters<Write>[0]['configs']]
    ) => Promise<RowChange[]>,
  ): Write =>
  async ({ identityId, configs }, context) => {
    await ensureIdentity(engine, identityId, context)
    const position = await writeChanges(changeLog, context, (tx) => work(tx, identityId, configs))
    return { id: identityId, position }
  }
