import type { Change } from '@overlay/rpc'
import { isUnknown, type Poison } from './poison.js'

/**
 * Puts the changes into a memory, all at once. Where that throws each is put alone, in order, and one that throws again is
 * put as its row is now, or as unknown: the others do not wait for it. Answers whether they were put alone.
 */
export async function feed(
  changes: readonly Change[],
  poison: Poison,
  put: (some: readonly Change[]) => void,
  putUnknown: (change: Change) => void,
): Promise<boolean> {
  const failureOf = (work: () => void): { readonly err: unknown } | undefined => {
    try {
      work()
      return undefined
    } catch (err) {
      return { err }
    }
  }
  const putOne = (change: Change) => failureOf(() => (isUnknown(change) ? putUnknown(change) : put([change])))

  if (!changes.some(isUnknown) && !failureOf(() => put(changes))) return false
  for (const change of changes) {
    const first = putOne(change)
    if (!first) continue
    const again = isUnknown(change) ? first : putOne(await poison.reload(change, first.err))
    if (again) putOne(poison.unknown(change, again.err))
  }
  return true
}
