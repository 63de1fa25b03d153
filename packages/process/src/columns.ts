/** Lines of a table. Each column is as wide as its longest text. */
export function columns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((text, at) => {
      widths[at] = Math.max(widths[at] ?? 0, text.length)
    })
  return rows.map((row) =>
    row
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
