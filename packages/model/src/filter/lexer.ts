import { FilterError } from './filter.js'

export interface Token {
  readonly kind: 'symbol' | 'keyword' | 'sign' | 'string' | 'number' | 'datetime' | 'end'
  /** Keywords in lower case with one blank, everything else as written. */
  readonly text: string
  readonly value?: string | bigint | number | Date
  readonly at: number
  /** White space stands before it: the grammar asks for it in many places. */
  readonly spaced: boolean
}

const keywords = new Set(
  `allof and anyof asc between by contains count desc false from icontains in isempty limit none not null or skip
   sort true where`.split(/\s+/),
)

const space = /[ \t\r\n]+/y
const word = /[A-Za-z_]+(?:\.[A-Za-z_]+)*/y
const negated = /not(?:[ \t\r\n]+(i?contains|between)|[ \t\r\n](in))(?![A-Za-z_])/iy // wire: exactly one blank in 'not in'
const datetime = /datetime\([ \t\r\n]*([-+:.TZtz\d]+)[ \t\r\n]*\)/y
const string = /"([^"\\]*(?:\\["\\fnrt][^"\\]*)*)"/y
const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?/y
const sign = /[<>!]=|[<>=()[\],]/y
const quoted = /'[^']*'/y

/** Splits a filter. wire: an unknown character is ignored: `name ?= "a"` is `name = "a"`. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  let spaced = false
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    return pattern.exec(text)
  }
  while (at < text.length) {
    const blank = match(space)
    if (blank) {
      at += blank[0].length
      spaced = true
      continue
    }
    const token = tokenAt()
    at += token?.length ?? 1
    if (!token) continue
    const { kind, shown, value } = token
    tokens.push({ kind, text: shown, at: at - token.length, spaced, ...(value !== undefined && { value }) })
    spaced = false
  }
  tokens.push({ kind: 'end', text: '<EOF>', at, spaced })
  return tokens

  function tokenAt(): Match | null {
    const name = match(word)?.[0]
    if (name !== undefined) return wordAt(name)
    if (text[at] === '"') return stringAt()
    const digits = match(number)
    if (digits) return numberAt(digits[0], digits[1] ?? digits[2])
    const mark = match(sign)?.[0]
    if (mark !== undefined) return matchOf('sign', mark)
    const odd = match(quoted)?.[0]
    return odd === undefined ? null : matchOf('symbol', odd)
  }

  function wordAt(name: string): Match {
    const lower = name.toLowerCase()
    const negation = lower === 'not' ? match(negated) : null
    if (negation) {
      const operator = negation[1] ?? negation[2] ?? ''
      return { ...matchOf('keyword', `not ${operator.toLowerCase()}`), length: negation[0].length }
    }
    if (keywords.has(lower)) return { ...matchOf('keyword', lower), length: name.length }
    const time = name === 'datetime' ? match(datetime) : null
    if (!time) return matchOf('symbol', name)
    const value = datetimeOf(time[1] ?? '')
    if (!value) throw unexpected(text, at, time[0])
    return matchOf('datetime', time[0], value)
  }

  function stringAt(): Match {
    const whole = match(string)
    if (!whole) throw unexpected(text, at, text.slice(at, at + 20))
    const value = unescaped(whole[1] ?? '')
    if (value.includes('\0')) throw unexpected(text, at, '\\u0000') // no stored text holds one
    return matchOf('string', whole[0], value)
  }

  function numberAt(shown: string, fraction: string | undefined): Match {
    const whole = fraction === undefined && shown.length <= 20 ? BigInt(shown) : undefined
    if (whole !== undefined && BigInt.asIntN(64, whole) === whole) return matchOf('number', shown, whole)
    const value = Number(shown)
    if (!Number.isFinite(value)) throw unexpected(text, at, shown)
    return matchOf('number', shown, value)
  }
}

interface Match {
  readonly kind: Token['kind']
  readonly shown: string
  readonly length: number
  readonly value: Token['value'] | undefined
}

const matchOf = (kind: Token['kind'], shown: string, value?: Token['value']): Match => ({
  kind,
  shown,
  length: shown.length,
  value,
})

/** wire: the message contains line and column twice. */
export function unexpected(text: string, at: number, shown: string): FilterError {
  const before = text.slice(0, at).split('\n')
  const line = before.length
  const column = before.at(-1)?.length ?? 0
  return new FilterError(
    'INVALID_FILTER',
    `Unexpected symbol: "${shown}" at line: ${line} column: ${column}. line: ${line}, column: ${column}, symbol: ${shown}`,
  )
}

/** wire: backslashes are replaced first, so that `\\n` in a filter is a new line, not a backslash and an n. */
const unescaped = (raw: string): string =>
  raw.includes('\\')
    ? raw
        .replaceAll('\\\\', '\\')
        .replaceAll('\\"', '"')
        .replaceAll('\\f', '\f')
        .replaceAll('\\n', '\n')
        .replaceAll('\\r', '\r')
        .replaceAll('\\t', '\t')
    : raw

const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/

/** A time of RFC 3339, its letters in either case; null for a day or hour that does not exist, unlike `Date`. */
export function datetimeOf(given: string): Date | null {
  const text = given.toUpperCase()
  const [whole, , sign, hours = 0, minutes = 0] = form.exec(text) ?? []
  const time = new Date(whole ?? Number.NaN)
  if (Number.isNaN(time.getTime())) return null
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
  const local = new Date(time.getTime() + offset * 60_000)
  return local.toISOString().slice(0, 19) === text.slice(0, 19) ? time : null
}
