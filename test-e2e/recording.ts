import { readFileSync } from 'node:fs'

/** One call of the web console, and the answer of the original. */
export interface RecordedCall {
  readonly page: string
  /** Method, path and query. `{name}` stands for a value of an earlier answer. */
  readonly call: string
  readonly status: number
  /** Headers in place of the usual ones. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly text?: string
  readonly code?: string
  /** The members of `data`, or of each of its rows. */
  readonly shows?: string
  readonly rows?: true
  /** Values for later calls, with their paths in this answer. */
  readonly keep?: Readonly<Record<string, string>>
}

/**
 * A pattern of values: names of types divided by bars, one pattern for all rows of a list, or patterns by member.
 * Optional members are not named.
 */
export type TypePattern = string | readonly TypePattern[] | { readonly [member: string]: TypePattern }

interface Members {
  readonly members: string
  readonly are: TypePattern
}

export interface Recording {
  readonly calls: readonly RecordedCall[]
  readonly members: ReadonlyMap<string, TypePattern>
}

export function readRecording(name: string): Recording {
  const text = readFileSync(new URL(`captures/${name}.jsonl`, import.meta.url), 'utf8')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedCall | Members)
  const isCall = (line: RecordedCall | Members): line is RecordedCall => 'call' in line
  return {
    calls: lines.filter(isCall),
    members: new Map(lines.flatMap((line) => (isCall(line) ? [] : [[line.members, line.are]]))),
  }
}

/** The places at which a value does not match the pattern. */
export function typeErrors(value: unknown, sort: TypePattern, at = 'data'): string[] {
  if (typeof sort === 'string') {
    const type = typeOf(value)
    return sort === '' || sort.split('|').includes(type) ? [] : [`${at} is ${type}, not ${sort}`]
  }
  if (OR_NULL in sort) return value === null ? [] : typeErrors(value, sort[OR_NULL] as TypePattern, at)
  if (Array.isArray(sort)) {
    if (!Array.isArray(value)) return [`${at} is ${typeOf(value)}, no list`]
    return value.flatMap((row, i) => typeErrors(row, sort[0] ?? '', `${at}.${i}`))
  }
  if (typeOf(value) !== 'object') return [`${at} is ${typeOf(value)}, no object`]
  return Object.entries(sort).flatMap(([member, of]) =>
    typeErrors((value as Record<string, unknown>)[member], of, `${at}.${member}`),
  )
}

const OR_NULL = 'or null'

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value
