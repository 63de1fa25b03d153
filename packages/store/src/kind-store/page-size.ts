import { MOST_PAGE_BYTES } from '../limits.js'

/** As many rows as fit a page, at least one, as a JSON array. The rows are JSON. */
export function fittingRows(
  rows: readonly Buffer[],
  mostBytes = MOST_PAGE_BYTES,
): { readonly rows: Buffer; readonly count: number } {
  let [bytes, count] = [1, 0] // with the closing bracket
  for (const { length } of rows) {
    if (count > 0 && bytes + length + 1 > mostBytes) break
    bytes += length + 1
    count += 1
  }
  return { rows: Buffer.from(`[${rows.slice(0, count).join()}]`), count }
}
