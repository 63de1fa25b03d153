import type { JsonSchema, links, Members, NoMembers, SchemaValue, Shown } from './schema.js'

export type Service = 'identity' | 'pki' | 'policy' | 'sessions'

/** One collection of the API, as data. Everything uniform about it follows from here. */
export interface Entity<
  F extends Fields = Fields,
  V extends View = View,
  W extends Variants | undefined = Variants | undefined,
> {
  readonly kind: string // path segment: 'service-policies'
  readonly singular: string // 'servicePolicy'; its table in snake case
  readonly called: string // in messages: 'router' for all sorts of routers
  readonly plural: string // in messages: 'servicePolicies'
  readonly calledOnDelete: string // in the message of a delete that finds no row
  readonly owner: Service
  /** Absent: the singular in snake case. Two kinds may share a table. */
  readonly table?: string
  readonly ids: IdForm
  readonly fields: F
  readonly links: Readonly<Record<string, Link>>
  /** Computed values that filters and sorts may name, as SQL over the kind's table. */
  readonly computed?: Readonly<Record<string, { readonly column: string; readonly type: SymbolType }>>
  /** True when another service or a cache keeps copies: writes leave change rows. */
  readonly followed: boolean
  /** True when the schema keeps count of the rows, because there may be many. */
  readonly counted?: true
  /** True when system rows, which no request may update, may be deleted. */
  readonly systemDeletable?: true
  /** Members that reads show besides the fields, or instead of them: the view seam returns them. */
  readonly shows: V
  /** Fields that depend on the value of another one. */
  readonly variants: W
  readonly published: PublishedNames
  readonly listType: ListType
  /** Query parameters of the lists of this kind, besides those of every list. */
  readonly listParameters: readonly ListParameter[]
  readonly summaryNames: readonly string[] // of its counts in the summary
}

export interface View {
  readonly always?: Members
  /** Left out when there is nothing to show. */
  readonly sometimes?: Members
  /** What the client API shows, where it shows less. */
  readonly clients?: ClientView
  /** What the fabric API shows besides. The view returns it in the perspective of that API. */
  readonly fabric?: Members
}

export interface ClientView {
  readonly title: string // in the documents
  /** All members, besides those of every kind. */
  readonly members: readonly string[]
  /** Members that other callers always see. */
  readonly sometimes?: Members
}

export interface Variants {
  readonly by: string
  readonly of: Readonly<Record<string, Variant>>
}

export interface Variant {
  /** Appended to the title of the kind. */
  readonly title: string
  /** Fields of this variant, besides those that no variant names. */
  readonly fields: Readonly<Record<string, Write>>
  readonly shows: Pick<View, 'always' | 'sometimes'>
}

/** Names in the published documents, from which clients are generated. */
export interface PublishedNames {
  /** Of bodies and answers: 'router' in routerCreate, routerDetail and listRoutersEnvelope. */
  readonly title: string
  /** Of the body parameter. */
  readonly body: string
}

export type ListType = 'application/json' | 'application/json; charset=utf-8'

export interface ListParameter {
  readonly name: string
  readonly type: 'string' | 'strings'
  readonly description: string
}

/** 10 characters, 22 characters of base62, or a cuid that grows with time. */
export type IdForm = 'short' | 'base62' | 'cuid'

/** One member, as plain data. */
export interface Field<T = unknown> {
  readonly write: Write
  /** What the fabric API writes, where the other APIs may not. */
  readonly fabricWrite?: Write
  readonly schema: JsonSchema // validation and the served documents
  readonly symbol: SymbolType | null // how filters compare it; null: filters may not name it
  readonly symbolName?: string // of the symbol, where it is not the member's: configTypeId is filtered as 'type'
  readonly column: string | null // null: the name in snake case
  readonly unique: boolean
  /** What an absent member becomes on create and replace. */
  readonly fallback: unknown
  /** The kind whose id this is; reads also show a reference, named without 'Id'. */
  readonly ref?: string
  /** The kind whose ids these are; of a map: whose ids its keys are. */
  readonly refs?: string
  /** Accepted after the create, and ignored. */
  readonly fixed?: true
  /** The kind that this role list selects; reads also show the roles by name. */
  readonly rolesOf?: string
  /** Words that policies select by: no '#' or '@' in front, none empty. */
  readonly attributes?: boolean
  /** Never leaves the owner: not in answers, audit rows or logs. */
  readonly secret?: boolean
  /** Stored; reads show it only through the view seam. */
  readonly hidden?: boolean
  store(value: T): unknown
  load(stored: unknown): T
}

export type Fields = Readonly<Record<string, Field>>

/** Create, replace, patch, as in the documents' tables: R required, O optional, - ignored. */
export type Write = 'RRO' | 'ROO' | 'OOO' | 'ORO' | 'R--' | 'O--' | 'RRR' | '--O' | '---'
export type SymbolType = 'string' | 'number' | 'bool' | 'datetime' | 'strings' | 'tags'

/** `/{kind}/{id}/{name}`: rows of kind `to`. */
export interface Link {
  readonly to: string
  readonly by?: string // the role list, or list of ids, of this kind that selects them
  readonly through?: string // the symbol of `to` that holds this entity's id: no call selects the rows
  readonly answeredBy?: Service // selects the rows; absent: the owner
  readonly unlisted?: true // not among _links
  readonly at?: string // no list: the entity of kind `to` whose id this member holds
  readonly special?: true // no list of rows: has a handler of its own
}

export type ValuesOf<E extends Entity> = {
  readonly [K in keyof E['fields']]: E['fields'][K] extends Field<infer T> ? T : never
}

/** Members of every kind, besides its own. */
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

type MembersOr<M> = M extends Members ? M : NoMembers
type ShownBy<V extends View> = Shown<MembersOr<V['always']>, MembersOr<V['sometimes']>> &
  Shown<NoMembers, MembersOr<V['fabric']>> &
  (V['clients'] extends { readonly sometimes: infer M } ? Shown<NoMembers, MembersOr<M>> : unknown)
type ShownByVariant<W> = W extends Variants ? OneOf<W['of'][keyof W['of']]> : unknown
type OneOf<V> = V extends Variant ? ShownBy<V['shows']> : never // one of the variants

/** What the view seam of a kind returns for one row. */
export type ViewOf<E extends Entity> = ShownBy<E['shows']> &
  ShownByVariant<E['variants']> & { readonly _links?: SchemaValue<typeof links> }
