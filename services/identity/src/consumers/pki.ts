import { type Check, type CheckDeps, copies, references } from '@overlay/maintenance'
import { ca, enrollment } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import {
  type ConsumerDefinition,
  deletedIds,
  type Effects,
  type RowChange,
  type Source,
} from '@overlay/store/change-log'
import { payloadDecoder, required } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import { type CaRow, caReferences, correctCas, removeCas, removeCasExcept, storeCas } from '../store/cas.js'
import {
  addMissing,
  enrollmentReferences,
  type OutstandingEnrollment,
  removeEnded,
  removeExcept,
  removeUnfounded,
} from '../store/outstanding-enrollments.js'

export const pkiConsumer = (source: Source): ConsumerDefinition => ({ source, effects: pkiEffects })

/** differs: the authenticators that an authority has certified, and the sessions of both, are deleted with it. */
export const pkiEffects: Effects = {
  kinds: [ca.kind, enrollment.kind],

  // an enrollment that was requested here is expected since
  concerns: (change) => change.kind === ca.kind || !enrollmentIn(change)?.isNew,

  async apply(tx, changes) {
    const last = [...new Map(changes.map((change) => [`${change.kind} ${change.id}`, change])).values()]
    const own = await applyCas(
      tx,
      last.filter(({ kind }) => kind === ca.kind),
    )
    await addMissing(tx, enrollmentsIn(last))
    await removeEnded(tx, deletedIds(last, enrollment.kind))
    return own
  },

  async reload(tx, rows) {
    for await (const page of rows.pages(enrollment.kind)) await addMissing(tx, enrollmentsIn(page))
    await removeExcept(tx, rows.ids(enrollment.kind))
    for await (const page of rows.pages(ca.kind)) await storeCas(tx, rowsIn(page))
    return removeCasExcept(tx, rows.ids(ca.kind))
  },
}

async function applyCas(tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> {
  const rows = rowsIn(changes)
  const stored = new Set(rows.map(({ id }) => id))
  await storeCas(tx, rows)
  return removeCas(
    tx,
    changes.map(({ id }) => id).filter((id) => !stored.has(id)),
  )
}

const enrollmentIn = payloadDecoder<typeof enrollment, { readonly isNew: boolean }>(enrollment)

/** Those of identities in these changes, without deletions. */
const enrollmentsIn = (changes: readonly Change[]): OutstandingEnrollment[] =>
  changes
    .filter(({ kind }) => kind === enrollment.kind)
    .flatMap((change) => {
      const identityId = enrollmentIn(change)?.identityId
      return identityId ? [{ id: change.id, identityId }] : []
    })

const caIn = payloadDecoder(ca)

/** The rows of these changes, without deletions. */
const rowsIn = (changes: readonly Change[]): CaRow[] =>
  changes.flatMap((change) => {
    const row = caIn(change)
    return row ? [{ id: change.id, row }] : []
  })

const wholeRow = (change: Change): CaRow => ({ id: change.id, row: required(caIn(change)) })

export const pkiChecks = (source: Source, deps: CheckDeps): readonly Check[] => [
  copies(deps, {
    source,
    kinds: [ca.kind],
    apply: (tx, changes) => correctCas(tx, changes.map(wholeRow)),
  }),
  copies(deps, {
    source,
    kinds: [enrollment.kind],
    async apply(tx, changes) {
      const ids = await addMissing(tx, enrollmentsIn(changes))
      return ids.map((id) => ({ kind: 'outstanding-enrollments', id, before: null, after: { id } }))
    },
  }),
  references(deps, {
    what: 'outstanding enrollment',
    from: enrollmentReferences,
    to: [enrollment.kind],
    repair: removeUnfounded,
  }),
  ...Object.entries(caReferences).map(([what, from]) =>
    references(deps, { what, from, to: [ca.kind], repair: removeCas }),
  ),
]
