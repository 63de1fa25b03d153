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

/** Names for statements whose text comes again and again, so that the server keeps their plans. They are kept for good. */
export function preparedNames({
  prefix,
  names: most,
  characters,
}: Quota): (text: string) => string | undefined {
  const names = new Map<string, string>()
  const seen = new Map<string, number>()
  return (text) => {
    const known = names.get(text)
    if (known !== undefined || names.size === most || text.length > characters) return known
    const uses = (seen.get(text) ?? 0) + 1
    if (uses < USES) {
      if (seen.size === MAX_SEEN) seen.clear()
      seen.set(text, uses)
      return undefined
    }
    seen.delete(text)
    const name = `${prefix}-${names.size}`
    names.set(text, name)
    return name
  }
}
