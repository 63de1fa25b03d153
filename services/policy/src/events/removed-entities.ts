import { pushAll, type RowChange, type Tx } from '@overlay/platform'
import type { Change } from '@overlay/rpc'
import { dropRole } from '../store/drop-role.js'

export const goneIn = (changes: readonly Change[]): string[] =>
  changes.filter(({ json }) => json.length === 0).map(({ id }) => id)

export async function dropAll(tx: Tx, kind: string, ids: readonly string[]): Promise<RowChange[]> {
  const changes: RowChange[] = []
  for (const id of ids) pushAll(changes, await dropRole(tx, kind, id))
  return changes
}
