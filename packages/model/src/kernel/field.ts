import type { Field, Write } from './types.js'

interface Options {
  readonly write?: Write
  readonly fabricWrite?: Write
  readonly unique?: boolean
  readonly filter?: false
  readonly symbolName?: string
  readonly column?: string
  readonly fallback?: unknown
  readonly secret?: true
  readonly hidden?: true
}

interface StringOptions extends Options {
  readonly min?: number
  readonly max?: number
  readonly nullable?: true
  readonly format?: string
}

type Schema = Field['schema']

/**
 * How a value is stored: as text, boolean, number, time, JSON document, or array of text whose empty form reads as
 * null.
 */
export type StoredForm = 'text' | 'flag' | 'number' | 'time' | 'document' | 'set'

const loads: Readonly<Record<StoredForm, (stored: unknown) => unknown>> = {
  text: (stored) => stored,
  flag: (stored) => stored,
  number: (stored) => (stored === null ? null : Number(stored)),
  time: (stored) => stored,
  document: (stored) => stored,
  /** wire: answers show an empty list of strings as null. */
  set: (stored) => ((stored as string[]).length > 0 ? stored : null),
}
const forms = new Map(Object.entries(loads).map(([form, load]) => [load, form as StoredForm]))

/** Undefined: only the field itself can load what is stored. */
export const formOf = ({ load }: Field): StoredForm | undefined => forms.get(load)

const formOfSymbol = {
  string: 'text',
  bool: 'flag',
  number: 'number',
  datetime: 'time',
  strings: 'set',
} as const

function make<T>(
  schema: Schema,
  symbol: keyof typeof formOfSymbol | null,
  fallback: unknown,
  o: Options = {},
): Field<T> {
  return {
    write: o.write ?? 'OOO',
    schema,
    symbol: o.filter === false ? null : symbol,
    column: o.column ?? null,
    unique: o.unique ?? false,
    fallback: o.fallback === undefined ? fallback : o.fallback,
    ...(o.symbolName && { symbolName: o.symbolName }),
    ...(o.fabricWrite && { fabricWrite: o.fabricWrite }),
    ...(o.secret && { secret: true }),
    ...(o.hidden && { hidden: true }),
    store: (value) => value,
    load: loads[symbol ? formOfSymbol[symbol] : 'document'] as (stored: unknown) => T,
  }
}

/** wire: answers show lists of strings sorted by bytes and without duplicates, whatever the order in the body. */
const set = (o?: Options): Field<readonly string[] | null> => ({
  ...make<readonly string[] | null>(strings, 'strings', [], o),
  store: (values) => [...new Set(values ?? [])].sort(byBytes),
})

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

const map = { type: ['object', 'null'], additionalProperties: true }
const strings = { type: ['array', 'null'], maxItems: 10_000, items: { type: 'string', maxLength: 4096 } }

export const field = {
  string: <const O extends StringOptions>(
    o?: O,
  ): Field<O extends { nullable: true } ? string | null : string> =>
    make(
      {
        type: o?.nullable ? ['string', 'null'] : 'string',
        ...(o?.min !== undefined && { minLength: o.min }),
        maxLength: o?.max ?? 4096,
        ...(o?.format && { format: o.format }),
      },
      'string',
      o?.nullable ? null : '',
      o,
    ),
  bool: (o?: Options): Field<boolean> => make({ type: 'boolean' }, 'bool', false, o),
  integer: (o?: Options & { min?: number; max?: number; nullable?: true }): Field<number> =>
    make<number>(
      {
        type: o?.nullable ? ['integer', 'null'] : 'integer',
        ...(o?.min !== undefined && { minimum: o.min }),
        ...(o?.max !== undefined && { maximum: o.max }),
      },
      'number',
      o?.nullable ? null : 0,
      o,
    ),
  /** JSON shows three digits of a second, always UTC. */
  datetime: (o?: Options): Field<Date | null> =>
    make({ type: ['string', 'null'], format: 'date-time' }, 'datetime', null, o),
  oneOf: <const V extends string>(values: readonly V[], o?: Options): Field<V> =>
    make({ type: 'string', enum: values }, 'string', values[0], o),
  /** JSON shows the name; storage and filters see the number. */
  coded: <const C extends Readonly<Record<string, number>>>(
    codes: C,
    o?: Options,
  ): Field<keyof C & string> => ({
    ...make<keyof C & string>(
      { type: 'string', enum: Object.keys(codes) },
      'number',
      Object.keys(codes)[0],
      o,
    ),
    store: (name) => codes[name],
    load: (code) => Object.keys(codes).find((name) => codes[name] === code) as keyof C & string,
  }),
  /** A JSON document, replaced as a whole; filters cannot name it. With `refs`: by ids of that kind. */
  object: (o?: Options & { schema?: Schema; readonly refs?: string }): Field<object | null> => ({
    ...make<object | null>(o?.schema ?? { type: 'object' }, null, null, o),
    ...(o?.refs && { refs: o.refs }),
  }),
  /** Any members, replaced as a whole; null is none. differs: keeps objects and lists. */
  map: (o?: Options): Field<Readonly<Record<string, unknown>>> => ({
    ...make<Readonly<Record<string, unknown>>>(map, null, {}, o),
    store: (value) => value ?? {},
  }),
  /** Free words that role lists select by. */
  attributes: (o?: Options): Field<readonly string[] | null> => ({ ...set(o), attributes: true }),
  /** A set of strings. With `refs`: ids of that kind. */
  strings: (o?: Options & { readonly refs?: string }): Field<readonly string[] | null> => ({
    ...set(o),
    ...(o?.refs && { refs: o.refs }),
  }),
  /** The id of an entity of another kind. */
  ref: (to: string, o?: Options & { nullable?: true; fixed?: true }): Field<string> => ({
    ...make<string>(
      { type: o?.nullable ? ['string', 'null'] : 'string' },
      'string',
      o?.nullable ? null : '',
      o,
    ),
    ref: to,
    ...(o?.fixed && { fixed: true }),
  }),
  /** A role list over another kind: '#attribute', '@id', '#all'. */
  roles: (of: string, o?: Options): Field<readonly string[] | null> => ({ ...set(o), rolesOf: of }),
}
