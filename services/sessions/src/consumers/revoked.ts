import type { Change, Position } from '@overlay/rpc'
import { isDeleted } from '@overlay/store/change-log'
import type { ChangedRow, Revocation } from '../domain/revocation.js'
import type { Sweeper } from '../sweep/sweeper.js'

/** Effects of changes that can revoke access. */
export interface RevocationListener extends Pick<Sweeper, 'wake'> {
  /** Called before they are recorded: grants from before this position do not count in this replica any more. */
  revoked?(schema: string, at: Position): void
}

/** The end of an API session ends its sessions, and revokes no grant of its identity. */
export function noteRevocations(
  listener: RevocationListener,
  schema: string,
  { timeline }: Position,
  revocations: readonly Revocation[],
): void {
  const numbers = revocations.flatMap(({ kind, number }) => (kind === 'api-session' ? [] : [number]))
  if (numbers.length > 0) listener.revoked?.(schema, { timeline, number: Math.max(...numbers) })
}

export const changedRow = (change: Change): ChangedRow => ({
  kind: change.kind,
  id: change.id,
  number: change.number,
  isDeleted: isDeleted(change),
})
