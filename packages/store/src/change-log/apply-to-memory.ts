import type { Change } from '@overlay/rpc'
import { isUnknown, type Poison } from './poison.js'

/**
 * Applies changes to memory, all at once. If that throws, applies each alone, in order. One that throws again is applied
 * with its current row, or as unknown, so that the others need not wait. Returns whether they were applied one by one.
 */
export async function applyToMemory(
  changes: readonly Change[],
  poison: Poison,
  apply: (changes: readonly Change[]) => void,
  applyUnknown: (change: Change) => void,
): Promise<boolean> {
  const failureOf = (work: () => void): { readonly err: unknown } | undefined => {
    try {
      work()
      return undefined
    } catch (err) {
      return { err }
    }
  }
  const applyOne = (change: Change) =>
    failureOf(() => (isUnknown(change) ? applyUnknown(change) : apply([change])))

  if (!changes.some(isUnknown) && !failureOf(() => apply(changes))) return false
  for (const change of changes) {
    const first = applyOne(change)
    if (!first) continue
    const again = isUnknown(change) ? first : applyOne(await poison.reload(change, first.err))
    if (again) applyOne(poison.unknown(change, again.err))
  }
  return true
}
