/** The items in order, in pages of at most `size`. */
export function pagesOf<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  const pages: (readonly T[])[] = []
  for (let from = 0; from < all.length; from += size) pages.push(all.slice(from, from + size))
  return pages
}

/** `list.push(...more)` puts all elements on the stack, which overflows at some hundred thousand. */
export function pushAll<T>(list: T[], more: Iterable<T>): void {
  for (const one of more) list.push(one)
}
