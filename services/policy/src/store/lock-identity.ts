import { lockEntities, type Moment } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'

/**
 * Keeps the deletion of an identity from taking effect here until the commit, so that rows may name it. False: its
 * deletion has taken effect already, since `moment` or at any time.
 */
export async function lockIdentity(tx: Tx, id: string, moment?: Moment): Promise<boolean> {
  const deleted = await lockEntities(tx, new Map([['identities', new Set([id])]]), moment)
  return deleted.size === 0
}
