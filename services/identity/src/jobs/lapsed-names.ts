import type { Consumer } from '@overlay/store/change-log'
import type { Db } from '@overlay/store/postgres'
import { lapsedNames, removeLapsedNames } from '../store/reserved-names.js'

/**
 * Removes reservations that have lapsed, when the consumer has applied all routers that got their names in time: their
 * identities have the names then.
 */
export async function endLapsedNames(
  db: Db,
  routers: Pick<Consumer, 'catchUp'>,
  signal: AbortSignal,
): Promise<void> {
  const lapsed = await lapsedNames(db)
  if (lapsed.length === 0) return
  await routers.catchUp(signal)
  await removeLapsedNames(db, lapsed)
}
