import { readFileSync } from 'node:fs'

/** One call of the web console, and what it was answered by the original. */
export interface RecordedCall {
  readonly page: string
  /** Method, path and query. `{name}` stands for what an earlier answer has told. */
  readonly call: string
  readonly status: number
  /** Other than the console's usual ones. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
  readonly text?: string
  readonly code?: string
  /** Whose members `data` has: in one row, or in each. */
  readonly shows?: string
  readonly rows?: true
  /** What later calls need of this answer, and where it is. */
  readonly keep?: Readonly<Record<string, string>>
}

/**
 * A sort of value: names of types divided by bars, one sort for all of a list, or sorts by member.
 * Members that rows need not have are not named.
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

/** Where a value is not what it should be; empty when all is well. */
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
