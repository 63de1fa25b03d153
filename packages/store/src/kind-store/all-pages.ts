import { WALK_ROWS } from '../limits.js'

/** All rows of a statement that selects up to `limit` of them after `last`, in order. */
export async function* allPages<R>(
  page: (last: R | undefined, limit: number) => Promise<{ readonly rows: readonly R[] }>,
): AsyncGenerator<R> {
  for (let last: R | undefined; ; ) {
    const { rows } = await page(last, WALK_ROWS)
    yield* rows
    if (rows.length < WALK_ROWS) return
    last = rows.at(-1)
  }
}
