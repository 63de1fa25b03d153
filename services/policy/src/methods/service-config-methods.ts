import { type Context, type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import { momentOf, type RowChange, writeChanges } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import { lockIdentity } from '../store/lock-identity.js'
import { listServiceConfigs, putServiceConfigs, removeServiceConfigs } from '../store/service-config.js'
import { jsonOf } from './encoding.js'
import type { MethodDeps } from './method-deps.js'

/** The configs that an identity uses in place of those of services. */
export function serviceConfigMethods({ changeLog, engine }: Pick<MethodDeps, 'changeLog' | 'engine'>) {
  /** NOT_FOUND: memory, brought up to date, does not have the identity. */
  async function ensureIdentity(identityId: string, context: Context): Promise<void> {
    await engine.bestEffort(engine.catchUp(context))
    if (!engine.namesOf('identities').has(identityId)) throw notFound('identity', identityId)
  }

  async function write(identityId: string, context: Context, work: (tx: Tx) => Promise<RowChange[]>) {
    await ensureIdentity(identityId, context)
    return { id: identityId, position: await writeChanges(changeLog, context, work) }
  }

  return {
    async listServiceConfigs({ identityId }, context) {
      await ensureIdentity(identityId, context)
      return { json: (await listServiceConfigs(changeLog.db, identityId)).map(jsonOf) }
    },

    async putServiceConfigs({ identityId, configs }, context) {
      const moment = await momentOf(changeLog.db)
      return write(identityId, context, async (tx) => {
        if (!(await lockIdentity(tx, identityId, moment))) throw notFound('identity', identityId)
        return putServiceConfigs(tx, identityId, configs)
      })
    },

    removeServiceConfigs: ({ identityId, configs }, context) =>
      write(identityId, context, (tx) => removeServiceConfigs(tx, identityId, configs)),
  } satisfies Partial<Methods<PolicyServiceService>>
}
