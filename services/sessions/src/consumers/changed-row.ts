import type { Change } from '@overlay/rpc'
import { isDeleted } from '@overlay/store/change-log'
import type { ChangedRow } from '../domain/revocation.js'

/** Sessions of deleted rows that end in the transaction of the change. The sweep ends the rest. */
export const ENDED_AT_ONCE = 500

export const changedRow = (change: Change): ChangedRow => {
  const { kind, id, number } = change
  return { kind, id, number, isDeleted: isDeleted(change) }
}
