export type Service = 'identity' | 'pki' | 'policy' | 'sessions'

/** One collection of the API, as data. Everything uniform about it follows from here. */
export interface Entity<F extends Fields = Fields> {
  readonly kind: string // path segment: 'service-policies'
  readonly singular: string // 'servicePolicy'; its table in snake case
  readonly called: string // in messages, where others say 'router' to all sorts of them
  readonly plural: string // in messages: 'servicePolicies'
  readonly owner: Service
  /** Where it is not the singular in snake case: two kinds may show the same rows. */
  readonly table?: string
  readonly ids: IdForm
  readonly fields: F
  readonly links: Readonly<Record<string, Link>>
  /** Computed values that filters and sorts may name, as SQL over the kind's table. */
  readonly computed?: Readonly<Record<string, { readonly column: string; readonly type: SymbolType }>>
  /** True when another service or a cache keeps copies: writes leave change rows. */
  readonly followed: boolean
  /** True when there may be so many that the schema keeps count of them. */
  readonly counted?: true
  /** True when system rows, which nobody changes, may be deleted all the same. */
  readonly systemMayGo?: true
  /** Own members that the client API shows, where it shows less than all. */
  readonly clientSees?: readonly string[]
}

/** As facts/rest.md 6: 9 to 10 characters, about 21 characters of base62, or a cuid that grows with time. */
export type IdForm = 'short' | 'base62' | 'cuid'

/** One member, as plain data. */
export interface Field<T = unknown> {
  readonly write: Write
  readonly schema: Readonly<Record<string, unknown>> // JSON Schema: validation and the served documents
  readonly symbol: SymbolType | null // how filters compare it; null: they may not name it
  readonly symbolName?: string // where it is not the member's name: configTypeId is filtered as 'type'
  readonly column: string | null // null: the name in snake case
  readonly unique: boolean
  /** What an absent member becomes on create and replace. */
  readonly fallback: unknown
  /** The kind whose id this is; reads show a reference beside it, named without 'Id'. */
  readonly ref?: string
  /** The kind whose ids these are; of a map: whose ids its keys are. */
  readonly refs?: string
  /** Accepted after the create, and ignored. */
  readonly fixed?: true
  /** The kind that this role list selects; reads show the roles by name beside it. */
  readonly rolesOf?: string
  /** Words that policies select by: no '#' or '@' in front, none empty. */
  readonly attributes?: boolean
  /** Never leaves the owner: not in answers, audit rows or logs. */
  readonly secret?: boolean
  /** Stored, but reads show it only through the kind's view. */
  readonly hidden?: boolean
  store(value: T): unknown
  load(stored: unknown): T
}

export type Fields = Readonly<Record<string, Field>>

/** Create, replace, patch, as in the documents' tables: R required, O optional, - ignored. */
export type Write = 'RRO' | 'ROO' | 'OOO' | 'ORO' | 'R--' | 'O--' | 'RRR' | '---'
export type SymbolType = 'string' | 'number' | 'bool' | 'datetime' | 'strings' | 'tags'

/** `/{kind}/{id}/{name}`: rows of kind `to`. */
export interface Link {
  readonly to: string
  readonly by?: string // the role list, or list of ids, of this kind that selects them
  readonly through?: string // the symbol of `to` that holds this entity's id: the gateway asks nobody
  readonly knownTo?: Service // who can say which; absent: the owner
  readonly unlisted?: true // not among _links
  readonly at?: string // no list: the one entity of kind `to` whose id this member holds
  readonly special?: true // no list of rows: answered by hand
}

export type ValuesOf<E extends Entity> = {
  readonly [K in keyof E['fields']]: E['fields'][K] extends Field<infer T> ? T : never
}

/** Members of every kind beside its own. */
export interface BaseRow {
  readonly id: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly tags: Tags
  readonly isSystem: boolean
}

export type Tags = Readonly<Record<string, string | number | boolean | null>>
export type RowOf<E extends Entity> = ValuesOf<E> & BaseRow

type Plain<T> = T extends Date ? string : T

/** A row as JSON in its changes. Members that are secret are missing there. */
export type PlainOf<E extends Entity> = { readonly [K in keyof RowOf<E>]: Plain<RowOf<E>[K]> }
