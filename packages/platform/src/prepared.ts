const MAX_NAMES = 200 // each costs some tens of kilobytes in every connection's server process
const MAX_SEEN = 2000
const MAX_TEXT = 8192 // characters
const USES = 5

/**
 * Names for statements whose text comes again and again, so that the server keeps their plans. Most are made of
 * definitions and there are not many; filters of clients can have any shape, and those that are rare stay without.
 */
export function preparedNames(): (text: string) => string | undefined {
  const names = new Map<string, string>()
  const seen = new Map<string, number>()
  return (text) => {
    const known = names.get(text)
    if (known !== undefined || names.size === MAX_NAMES || text.length > MAX_TEXT) return known
    const uses = (seen.get(text) ?? 0) + 1
    if (uses < USES) {
      if (seen.size === MAX_SEEN) seen.clear()
      seen.set(text, uses)
      return undefined
    }
    seen.delete(text)
    const name = `often-${names.size}`
    names.set(text, name)
    return name
  }
}
