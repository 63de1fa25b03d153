import { lockEntities, type Moment } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'

/** Whether rows may name the identity: its deletion has not been followed, and is not before the commit. */
export async function holdsIdentity(tx: Tx, id: string, moment?: Moment): Promise<boolean> {
  const deleted = await lockEntities(tx, new Map([['identities', new Set([id])]]), moment)
  return deleted.size === 0
}
