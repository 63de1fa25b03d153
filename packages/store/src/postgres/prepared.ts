const MAX_TEXTS = 2000 // whose uses are counted
const MIN_USES = 5

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

/** The shortest time between two replacements of a name. */
export const REPLACE_MS = 60_000

/**
 * A connection keeps the plans of all names, and what it has read of the catalog, until its end. The lifetime and the rate
 * of replacements bound their number, and closing a connection returns its memory.
 */
export const CONNECTION_SECONDS = 600

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
    if (count < MIN_USES || !hasRoom()) {
      if (uses.size === MAX_TEXTS) uses.clear()
      uses.set(text, count)
      return undefined
    }
    uses.delete(text)
    const name = `${prefix}-${next++}`
    names.set(text, { name, usedAt: turn++ })
    return name
  }
}
