const PAGE_ROWS = 1000

/** All rows of a statement that selects up to `limit` of them after `last`, in order. */
export async function* allPages<R>(
  page: (last: R | undefined, limit: number) => Promise<{ readonly rows: readonly R[] }>,
): AsyncGenerator<R> {
  for (let last: R | undefined; ; ) {
    const { rows } = await page(last, PAGE_ROWS)
    yield* rows
    if (rows.length < PAGE_ROWS) return
    last = rows.at(-1)
  }
}
