import type { IdentityServiceService, Methods } from '@overlay/rpc'
import * as store from '../store/api-sessions.js'
import type { Deps } from './deps.js'

export const markActivity =
  ({ changeLog: { db } }: Deps): Methods<IdentityServiceService>['markActivity'] =>
  async ({ apiSessionIds, atMs }, { deadline }) => ({
    unknownIds: await db.transaction(deadline, (tx) => store.markActivity(tx, apiSessionIds, atMs)),
  })
