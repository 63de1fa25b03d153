import { type Check, type CheckDeps, references } from '@overlay/maintenance'
import type { LoadedRows, RowChange, Source } from '@overlay/store/change-log'
import { deletedSince, type Names } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import type { EnrollmentIssuer } from '../keys/enrollment-issuer.js'
import {
  endEnrollmentsOfOwners,
  endedOwnerReferences,
  ownerIds,
  ownerReferences,
} from '../store/ended-enrollments.js'
import type { OwnerKind } from '../store/enrollments.js'

export interface ConsumerDeps {
  readonly source: Source
  readonly issuer: EnrollmentIssuer
  readonly names: Names
}

/** Ends the enrollments of owners that were deleted while they were not followed. */
export const endEnrollmentsOfDeleted = async (
  tx: Tx,
  names: Names,
  kind: OwnerKind,
  rows: LoadedRows,
): Promise<readonly RowChange[]> =>
  endEnrollmentsOfOwners(tx, kind, await deletedSince(tx, names, kind, rows, ownerIds(kind)))

/** Outstanding and ended enrollments name owners that exist. */
export function ownerChecks(deps: CheckDeps, kind: OwnerKind): readonly Check[] {
  const repair = (tx: Tx, ids: readonly string[]) => endEnrollmentsOfOwners(tx, kind, ids)
  return [
    references(deps, { what: 'enrollment', from: ownerReferences(kind), to: [kind], repair }),
    references(deps, { what: 'ended enrollment', from: endedOwnerReferences(kind), to: [kind], repair }),
  ]
}
