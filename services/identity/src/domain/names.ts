/** What may stand in brackets in the format of an authority. */
export interface NameParts {
  readonly caName: string
  readonly caId: string
  readonly commonName: string
  readonly requestedName: string
  readonly identityId: string
}

/** wire: words that nobody knows stay as they are. */
export const formattedName = (format: string, parts: NameParts): string =>
  format.replace(/\[(\w+)\]/g, (text, word: string) =>
    Object.hasOwn(parts, word) ? parts[word as keyof NameParts] : text,
  )

/** wire: the number comes behind the ones that were taken too. */
export const nextName = (taken: string, count: number): string => `${taken}${String(count).padStart(6, '0')}`
