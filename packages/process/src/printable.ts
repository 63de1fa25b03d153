const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

/** Text of a client for a log or a terminal: bounded, with marks in place of control characters. */
export function printable(text: string, longest = Number.POSITIVE_INFINITY): string {
  const bounded = text.length > longest ? `${text.slice(0, longest)}…` : text
  return bounded.replace(unprintable, '\uFFFD')
}
