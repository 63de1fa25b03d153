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
  return { rows: arrayOf(rows.slice(0, count), bytes), count }
}

function arrayOf(rows: readonly Buffer[], bytes: number): Buffer {
  if (rows.length === 0) return Buffer.from('[]')
  const array = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const row of rows) {
    array[at] = at === 0 ? OPENING : COMMA
    row.copy(array, at + 1)
    at += row.length + 1
  }
  array[at] = CLOSING
  return array
}

const [OPENING, COMMA, CLOSING] = [0x5b, 0x2c, 0x5d]
