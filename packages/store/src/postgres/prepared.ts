import { COUNTED_TEXTS, REPLACE_MS, USES_TO_PREPARE } from '../limits.js'

export interface Quota {
  readonly prefix: string
  readonly names: number
  readonly characters: number
}

/** For statements built from definitions. There are few. */
export const ownTexts: Quota = { prefix: 'often', names: 300, characters: 16_384 }

/** For statements shaped by clients. A plan takes memory in the server, for each connection. */
export const clientTexts: Quota = { prefix: 'list', names: 60, characters: 8192 }

/** A name, and when its text came last. */
interface Named {
  readonly name: string
  usedAt: number
}

/**
 * Names for texts that are used often, so that the server keeps their plans. At the limit a new text replaces the least
 * recently used one. No name is used twice.
 */
export function preparedNames(
  { prefix, names: most, characters }: Quota,
  now: () => number = () => performance.now(),
): (text: string) => string | undefined {
  const names = new Map<string, Named>()
  const uses = new Map<string, number>()
  let next = 0
  let turn = 0
  let replacedMs = now()

  const hasRoom = (): boolean => {
    if (names.size < most) return true
    if (now() - replacedMs < REPLACE_MS) return false
    replacedMs = now()
    const [[oldest] = ['']] = [...names].sort(([, one], [, other]) => one.usedAt - other.usedAt)
    return names.delete(oldest)
  }

  return (text) => {
    const existing = names.get(text)
    if (existing !== undefined) {
      existing.usedAt = turn++ // moving it in the map at each use would cost more than the look-up
      return existing.name
    }
    if (text.length > characters) return undefined
    const count = (uses.get(text) ?? 0) + 1
    if (count < USES_TO_PREPARE || !hasRoom()) {
      if (uses.size === COUNTED_TEXTS) uses.clear()
      uses.set(text, count)
      return undefined
    }
    uses.delete(text)
    const name = `${prefix}-${next++}`
    names.set(text, { name, usedAt: turn++ })
    return name
  }
}
