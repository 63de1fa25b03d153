import { isOlder } from '@overlay/store/postgres/releases'

/** What the former release may not find in a database: it uses tables and columns as they were. */
const destructive: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['drops', /\bdrop\s+(?!index\b|constraint\b|default\b|not\b|expression\b)\w+/],
  ['renames', /\brename\b/],
  ['changes the type of a column', /\balter\s+(?:column\s+)?\w+\s+(?:set\s+data\s+)?type\b/],
  ['requires a column that former releases leave empty', /\bset\s+not\s+null\b/],
]

/** A comment that says why rows of the former release satisfy what the migration requires: `-- true before: c is never null`. */
const assurance = /^--\s*true before: \S/m

/** A comment that names the release which no longer uses what the migration removes: `-- unused since 0.2.0: the column x`. */
const permission = /^--\s*unused since (\d+\.\d+\.\d+): \S/m

/** Why the former release could not work with this migration. Empty: it can. */
export function refusalsOf(sql: string, former: string): readonly string[] {
  const unusedSince = permission.exec(sql)?.[1]
  if (unusedSince !== undefined)
    return isOlder(former, unusedSince) ? [`removes what release ${former} uses`] : []
  const code = sql
    .replaceAll(/--.*$/gm, '')
    .replaceAll(/\/\*.*?\*\//gs, '')
    .toLowerCase()
  const refusals = destructive.flatMap(([what, pattern]) => (pattern.test(code) ? [what] : []))
  for (const [, column = ''] of code.matchAll(
    /\badd\s+(?:column\s+)?(?!constraint\b)(.*?)(?=,\s*add\b|;|$)/gs,
  ))
    if (/\bnot\s+null\b/.test(column) && !/\bdefault\b|\bgenerated\b/.test(column))
      refusals.push('adds a column that former releases leave empty')
  const created = [...code.matchAll(/\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?([\w.]+)/g)].map(
    ([, name]) => name,
  )
  const isNew = (table: string | undefined): boolean => created.includes(table)
  const constrained = [
    ...code.matchAll(/\balter\s+table\s+(?:only\s+)?([\w.]+)[^;]*?\badd\s+constraint\b/g),
    ...code.matchAll(/\bcreate\s+unique\s+index\b[^;]*?\bon\s+([\w.]+)/g),
  ]
  if (constrained.some(([, table]) => !isNew(table)) && !assurance.test(sql))
    refusals.push('requires what rows of former releases may not satisfy')
  return refusals
}
