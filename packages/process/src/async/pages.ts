/** The items in order, in pages of at most `size`. */
export function pagesOf<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  const pages: (readonly T[])[] = []
  for (let from = 0; from < all.length; from += size) pages.push(all.slice(from, from + size))
  return pages
}
