/** Half of a message, so that one more row always fits. */
const MOST_BYTES = 8 * 1024 * 1024

/** As many rows as fit a page, at least one, as a JSON array. The rows are JSON. */
export function fittingRows(
  rendered: readonly string[],
  mostBytes = MOST_BYTES,
): { readonly rows: Buffer; readonly count: number } {
  const rows = arrayOf(rendered)
  if (rows.length <= mostBytes || rendered.length <= 1) return { rows, count: rendered.length }
  let [bytes, count] = [0, 0]
  for (const row of rendered) {
    bytes += Buffer.byteLength(row) + 1
    if (count > 0 && bytes > mostBytes) break
    count += 1
  }
  return { rows: arrayOf(rendered.slice(0, count)), count }
}

const arrayOf = (rendered: readonly string[]): Buffer => Buffer.from(`[${rendered.join()}]`)
