/** A version in the strict form of semantic versioning: x.y.z, perhaps with a pre-release. */
interface Version {
  readonly numbers: readonly bigint[]
  readonly preRelease: readonly string[]
}

export type VersionRange = (version: string) => boolean

const STRICT =
  /^(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([\da-zA-Z-]+(?:\.[\da-zA-Z-]+)*))?(?:\+[\da-zA-Z.-]+)?$/

function versionOf(text: string): Version | undefined {
  const [, major, minor, patch, preRelease] = STRICT.exec(text) ?? []
  if (major === undefined || minor === undefined || patch === undefined) return undefined
  return { numbers: [major, minor, patch].map(BigInt), preRelease: preRelease?.split('.') ?? [] }
}

/** Less than zero: a comes first. What is built from a version is not compared. */
function compare(a: Version, b: Version): number {
  for (const [at, number] of a.numbers.entries()) {
    const other = b.numbers[at] ?? 0n
    if (number !== other) return number < other ? -1 : 1
  }
  if (a.preRelease.length === 0 || b.preRelease.length === 0)
    return Math.sign(b.preRelease.length) - Math.sign(a.preRelease.length)
  for (const [at, part] of a.preRelease.entries()) {
    const other = b.preRelease[at]
    if (other === undefined) return 1
    if (part !== other) return compareParts(part, other)
  }
  return a.preRelease.length - b.preRelease.length
}

/** Numbers go before words. */
function compareParts(a: string, b: string): number {
  const [x, y] = [a, b].map((part) => /^\d+$/.test(part))
  if (x && y) return BigInt(a) < BigInt(b) ? -1 : 1
  if (x !== y) return x ? -1 : 1
  return a < b ? -1 : 1
}

type Test = (version: Version) => boolean

const COMPARISON = /^(>=|<=|==|!=|>|<|=|!|)([^\s<>=!|]+)$/

/**
 * Comparisons side by side must all hold, those around `||` one of them: `>=5.0.0 <6.0.0 || 7.1.x`. Undefined: it is
 * no range.
 */
export function versionRange(text: string): VersionRange | undefined {
  const alternatives: Test[] = []
  for (const side of text.split('||')) {
    const words = side
      .replace(/([<>=!]+)\s+/g, '$1')
      .split(/\s+/)
      .filter(Boolean)
    const tests = words.map(testOf)
    if (tests.length === 0 || !tests.every((test) => test !== undefined)) return undefined
    alternatives.push((version) => tests.every((test) => test(version)))
  }
  return (reported) => {
    const version = versionOf(reported)
    return version !== undefined && alternatives.some((test) => test(version))
  }
}

function testOf(word: string): Test | undefined {
  const [, operator, named] = COMPARISON.exec(word) ?? []
  if (operator === undefined || named === undefined) return undefined
  const bounds = boundsOf(named)
  if (!bounds) return undefined
  const [from, below] = bounds
  const isBefore: Test = (version) => compare(version, from) < 0
  /** Of a single version: this one or later. Of `1.2.x`: not before the next one. */
  const isBehind: Test = below
    ? (version) => compare(version, below) >= 0
    : (version) => compare(version, from) > 0
  switch (operator) {
    case '>':
      return isBehind
    case '>=':
      return (version) => !isBefore(version)
    case '<':
      return isBefore
    case '<=':
      return (version) => !isBehind(version)
    case '!':
    case '!=':
      return (version) => isBefore(version) || isBehind(version)
    default:
      return (version) => !isBefore(version) && !isBehind(version)
  }
}

/** The version itself; of `1.x` and `1.2.x` the first one in it, and the first one behind. */
function boundsOf(named: string): readonly [Version, Version?] | undefined {
  const [, major, minor] = /^(\d{1,18})(?:\.(\d{1,18}))?\.x$/.exec(named) ?? []
  if (major === undefined) {
    const version = versionOf(named)
    return version && [version]
  }
  const at = (...numbers: bigint[]): Version => ({ numbers, preRelease: [] })
  const x = BigInt(major)
  if (minor === undefined) return [at(x, 0n, 0n), at(x + 1n, 0n, 0n)]
  const y = BigInt(minor)
  return [at(x, y, 0n), at(x, y + 1n, 0n)]
}
