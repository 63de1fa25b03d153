const MAX_SEEN = 2000
const USES = 5

export interface Quota {
  readonly prefix: string
  readonly names: number
  readonly characters: number
}

/** Of statements that are made of definitions: there are not many. */
export const ownTexts: Quota = { prefix: 'often', names: 300, characters: 16_384 }

/** Of statements that clients give their shape: a plan costs memory in the server's process of each connection. */
export const clientTexts: Quota = { prefix: 'list', names: 60, characters: 4096 }

/** Between two replacements of a name. */
const REPLACE_MS = 60_000

/**
 * A connection keeps the plan of each name that it has seen until its end. Together with the pace of replacements this
 * bounds the plans of one connection.
 */
export const CONNECTION_SECONDS = 3600

/**
 * Names for statements whose text comes again and again, so that the server keeps their plans. When there are as many
 * as there may be, another text takes the place of the one that has not come for longest. No name is used twice.
 */
export function preparedNames(
  { prefix, names: most, characters }: Quota,
  now: () => number = () => performance.now(),
): (text: string) => string | undefined {
  const names = new Map<string, string>() // the text that has not come for longest is the first
  const seen = new Map<string, number>()
  let made = 0
  let replacedMs = now()

  const hasRoom = (): boolean => {
    if (names.size < most) return true
    if (now() - replacedMs < REPLACE_MS) return false
    replacedMs = now()
    const [oldest = ''] = names.keys()
    return names.delete(oldest)
  }

  return (text) => {
    const known = names.get(text)
    if (known !== undefined) {
      names.delete(text)
      names.set(text, known)
      return known
    }
    if (text.length > characters) return undefined
    const uses = (seen.get(text) ?? 0) + 1
    if (uses < USES || !hasRoom()) {
      if (seen.size === MAX_SEEN) seen.clear()
      seen.set(text, uses)
      return undefined
    }
    seen.delete(text)
    const name = `${prefix}-${made++}`
    names.set(text, name)
    return name
  }
}
