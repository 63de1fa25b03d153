import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { markTokensSeen } from '../store/access-tokens.js'
import * as store from '../store/api-sessions.js'
import type { Deps } from './deps.js'

export const markActivity =
  ({ changeLog: { db } }: Deps): Methods<IdentityServiceService>['markActivity'] =>
  async ({ apiSessionIds, atMs, accessTokenIds }, { deadline }) => ({
    unknownIds: await db.transaction(deadline, async (tx) => {
      const unknown = await store.markActivity(tx, apiSessionIds, atMs)
      await markTokensSeen(tx, accessTokenIds)
      return unknown
    }),
  })
