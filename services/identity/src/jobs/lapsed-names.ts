import type { Consumer } from '@overlay/platform/change-log'
import type { Db } from '@overlay/platform/postgres'
import { lapsedNames, removeLapsedNames } from '../store/reserved-names.js'

/**
 * Removes reservations that have lapsed, when the consumer has applied all routers that got their names in time: their
 * identities have the names then. True: there were some.
 */
export async function endLapsedNames(
  db: Db,
  routers: Pick<Consumer, 'catchUp'>,
  signal: AbortSignal,
): Promise<boolean> {
  const lapsed = await lapsedNames(db)
  if (lapsed.length === 0) return false
  await routers.catchUp(signal)
  await removeLapsedNames(db, lapsed)
  return true
}
