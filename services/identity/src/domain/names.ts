/** The words in brackets in the name format of an authority. */
export interface NameParts {
  readonly caName: string
  readonly caId: string
  readonly commonName: string
  readonly requestedName: string
  readonly identityId: string
}

/** wire: brackets with an unknown word stay in the name. */
export const formattedName = (format: string, parts: NameParts): string =>
  format.replace(/\[(\w+)\]/g, (text, word: string) =>
    Object.hasOwn(parts, word) ? parts[word as keyof NameParts] : text,
  )

/** wire: a number of six digits is appended to the name that was in use, also to one that has such a number. */
export const nextName = (taken: string, count: number): string => `${taken}${String(count).padStart(6, '0')}`
