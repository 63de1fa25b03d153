/**
 * The oldest release whose processes work with the schemas of this one: the release before it, and for the first release
 * itself. The commit after a release sets it to that release; a test compares.
 */
export const OLDEST_RELEASE = '0.1.0'

const partsOf = (release: string): readonly number[] =>
  release.split('.', 3).map((part) => Number.parseInt(part, 10))

/** Whether a release is older than another one. */
export function isOlder(release: string, other: string): boolean {
  const [parts, others] = [partsOf(release), partsOf(other)]
  const at = parts.findIndex((part, index) => part !== others[index])
  return (parts[at] ?? 0) < (others[at] ?? 0)
}
