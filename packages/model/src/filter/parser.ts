import { FILTER_DEPTH } from '../limits.js'
import {
  type Comparison,
  type Filter,
  FilterError,
  type Literal,
  type Operand,
  type SortKey,
} from './filter.js'
import { type Token, tokensOf, unexpected } from './lexer.js'

/** A parsed filter with its clauses. */
export interface Statement {
  readonly where?: Filter
  readonly sort?: readonly SortKey[]
  readonly skip?: number
  readonly limit?: number | null
}

/** What a filter may cost: each condition is evaluated for every row. */
export interface FilterLimits {
  readonly characters: number
  readonly conditions: number
}

export const filterLimits: FilterLimits = { characters: 65_536, conditions: 1000 }

/** differs: of callers without a session. */
export const strangerLimits: FilterLimits = { characters: 1024, conditions: 10 }

/**
 * Reads a filter. wire: 'and' and 'or' have one precedence and associate to the right: `a and b or c` is `a and (b or
 * c)`; `not a and b` is `not (a and b)`.
 */
export function parse(text: string, limits = filterLimits): Statement {
  if (text.length > limits.characters) throw new FilterError('INVALID_FILTER', 'the filter is too long')
  const tokens = tokensOf(text)
  let next = 0
  let conditions = 0

  const peek = (): Token => tokens[next] as Token // the last one is 'end'; no rule takes it
  const take = (): Token => tokens[next++] as Token
  const fail = (token = peek()): never => {
    throw unexpected(text, token.at, token.text)
  }
  const is = (...texts: string[]): boolean => {
    const { kind, text: shown } = peek()
    return (kind === 'keyword' || kind === 'sign') && texts.includes(shown)
  }
  const isOperator = (): boolean => peek().kind !== 'string' && operators.has(peek().text)
  const needSpace = (): void => {
    if (!peek().spaced) fail()
  }
  const expect = (shown: string): Token => (is(shown) ? take() : fail())
  const accept = (shown: string): boolean => {
    const isNext = is(shown)
    if (isNext) next += 1
    return isNext
  }
  const symbol = (): string => (peek().kind === 'symbol' ? take().text : fail())

  const statement = query(0)
  if (peek().kind !== 'end') fail()
  return statement

  function query(depth: number): Statement {
    const first = next
    const part = (name: string): boolean => {
      if (!is(name)) return false
      if (next > first) needSpace()
      next += 1
      return true
    }
    const where = is('sort', 'skip', 'limit') ? undefined : expression(depth)
    const sort = part('sort') ? sortKeys() : undefined
    const skip = part('skip') ? wholeNumber() : undefined
    const limit = part('limit') ? (accept('none') ? null : wholeNumber()) : undefined
    return {
      ...(where && { where }),
      ...(sort && { sort }),
      ...(skip !== undefined && { skip }),
      ...(limit !== undefined && { limit }),
    }
  }

  function sortKeys(): SortKey[] {
    needSpace()
    expect('by')
    needSpace()
    const keys: SortKey[] = []
    do {
      const name = symbol()
      if (is('asc', 'desc')) needSpace()
      const descending = accept('desc')
      if (!descending) accept('asc')
      keys.push({ symbol: name, descending })
    } while (accept(','))
    return keys
  }

  function wholeNumber(): number {
    needSpace()
    const { value } = peek()
    if (typeof value !== 'bigint') return fail()
    next += 1
    return Number(value)
  }

  /** Terms with 'and' and 'or' between them; each change of the word nests one deeper. */
  function expression(depth: number): Filter {
    const runs: { op: 'and' | 'or'; terms: Filter[] }[] = []
    let run: (typeof runs)[number] | undefined
    for (;;) {
      const level = depth + runs.length
      if (level > FILTER_DEPTH) throw new FilterError('INVALID_FILTER', 'the filter is nested too deeply')
      const term = primary(level + 1)
      if (!is('and', 'or')) return fold(runs, term)
      needSpace()
      const op = take().text as 'and' | 'or'
      needSpace()
      if (run?.op !== op) {
        run = { op, terms: [] }
        runs.push(run)
      }
      run.terms.push(term)
    }
  }

  function primary(depth: number): Filter {
    conditions += 1
    if (conditions > limits.conditions)
      throw new FilterError('INVALID_FILTER', 'the filter has too many conditions')
    if (accept('not')) {
      needSpace()
      return { op: 'not', term: expression(depth) }
    }
    if (accept('(')) {
      const inner = expression(depth)
      expect(')')
      return inner
    }
    if (is('true', 'false')) return { op: take().text as 'true' | 'false' }
    if (accept('isempty')) return { op: 'isEmpty', ...set(depth) }
    const of = (['anyOf', 'allOf', 'count'] as const).find((name) => accept(name.toLowerCase()))
    if (of) return comparison({ ...set(depth), of })
    const operand = { symbol: symbol() }
    // A symbol alone is a bool.
    return isOperator() ? comparison(operand) : { ...operand, op: '=', value: true }
  }

  function set(depth: number): Operand {
    if (peek().spaced) fail()
    expect('(')
    const operand: Operand = accept('from') ? linked(depth) : { symbol: symbol() }
    expect(')')
    return operand
  }

  function linked(depth: number): Operand {
    needSpace()
    const name = symbol()
    needSpace()
    expect('where')
    needSpace()
    query(depth)
    return { symbol: name, linked: true }
  }

  function comparison(operand: Operand): Comparison {
    const operator = isOperator() ? take() : fail()
    switch (operator.text) {
      case 'in':
      case 'not in':
        needSpaces(operator)
        return { ...operand, op: operator.text, values: list() }
      case 'between':
      case 'not between': {
        needSpaces(operator)
        const { kind } = peek()
        const from = literal('number', 'datetime')
        needSpace()
        expect('and')
        needSpace()
        return { ...operand, op: operator.text, values: [from, literal(kind)] }
      }
      case 'contains':
      case 'not contains':
        return { ...operand, op: operator.text, value: literal('string', 'number') as string }
      case 'icontains':
      case 'not icontains':
        return { ...operand, op: operator.text, value: literal('string') as string }
      default: {
        const op = operator.text as '='
        if (op !== '=' && op !== '!=')
          return { ...operand, op, value: literal('string', 'number', 'datetime') }
        if (accept('null')) return { ...operand, op, value: null }
        if (is('true', 'false')) return { ...operand, op, value: take().text === 'true' }
        return { ...operand, op, value: literal('string', 'number', 'datetime') }
      }
    }
  }

  function needSpaces(operator: Token): void {
    if (!operator.spaced) fail(operator)
    needSpace()
  }

  function literal(...kinds: Token['kind'][]): Literal {
    const { kind, value } = peek()
    if (value === undefined || !kinds.includes(kind)) return fail()
    next += 1
    return value
  }

  function list(): Literal[] {
    expect('[')
    const { kind } = peek()
    const values: Literal[] = []
    do values.push(literal(kind))
    while (accept(','))
    expect(']')
    return values
  }
}

const operators = new Set([
  ...['=', '!=', '<', '<=', '>', '>='],
  ...['contains', 'icontains', 'in', 'between'].flatMap((name) => [name, `not ${name}`]),
])

/** Hangs each run of equal words under the one to its left. */
function fold(runs: readonly { op: 'and' | 'or'; terms: Filter[] }[], last: Filter): Filter {
  return runs.reduceRight<Filter>((right, { op, terms }) => ({ op, terms: [...terms, right] }), last)
}
