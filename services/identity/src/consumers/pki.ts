import { ca } from '@overlay/model'
import type { ConsumerDefinition, Effects, Source } from '@overlay/platform/change-log'
import { payloadDecoder, required } from '@overlay/platform/kind-store'
import { type Check, type CheckDeps, copies, references } from '@overlay/platform/maintenance'
import type { Change } from '@overlay/rpc'
import {
  type CaRow,
  caReferences,
  correctCas,
  removeCas,
  removeCasExcept,
  storeCas,
} from '../store/known-cas.js'

export const pkiConsumer = (source: Source): ConsumerDefinition => ({ source, effects: pkiEffects })

/** differs: the authenticators that an authority has certified, and the sessions of both, are deleted with it. */
export const pkiEffects: Effects = {
  kinds: [ca.kind],

  async apply(tx, changes) {
    const last = [...new Map(changes.map((change) => [change.id, change])).values()]
    const rows = rowsIn(last)
    const stored = new Set(rows.map(({ id }) => id))
    await storeCas(tx, rows)
    return removeCas(
      tx,
      last.map(({ id }) => id).filter((id) => !stored.has(id)),
    )
  },

  async reload(tx, rows) {
    for await (const page of rows.pages(ca.kind)) await storeCas(tx, rowsIn(page))
    return removeCasExcept(tx, rows.ids(ca.kind))
  },
}

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
  ...Object.entries(caReferences).map(([what, from]) =>
    references(deps, { what, from, to: [ca.kind], repair: removeCas }),
  ),
]
