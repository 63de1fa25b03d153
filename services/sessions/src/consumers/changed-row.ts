import type { Change } from '@overlay/rpc'
import { isDeleted } from '@overlay/store/change-log'
import type { ChangedRow } from '../domain/revocation.js'

export const changedRow = (change: Change): ChangedRow => {
  const { kind, id, number } = change
  return { kind, id, number, isDeleted: isDeleted(change) }
}
