/**
 * Migrations that have become several files, or have another name, since a database may have run them. Their statements
 * are the same.
 * The old name stays in the table of schemas that have run it.
 */
const PRESENT_NAMES: Readonly<Record<string, readonly string[]>> = {
  '20260112094000000_jobs': ['20260112094100000_jobs'],
  '20260112098000000_row-counts': ['20260112097500000_row-count-parts', '20260112098000000_row-counts'],
  '20260113090000000_policy-followed': [
    '20260113080000000_deleted-entities',
    '20260113090000000_policy-followed',
  ],
}

/** These migrations by the names that they have now, in order. */
export const presentNames = (names: readonly string[]): readonly string[] =>
  [...new Set(names.flatMap((name) => PRESENT_NAMES[name] ?? [name]))].sort()
