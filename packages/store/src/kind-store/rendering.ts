import { clientMembers, type Entity, type Field, field, linksOf, memoized } from '@overlay/model'
import type { QueryResultRow } from 'pg'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { jsonColumn, unmarked } from './json-text.js'
import type { Kind } from './kind.js'
import { columnOf } from './row.js'

type Members = Readonly<Record<string, unknown>>

/**
 * How rows of a kind become JSON text, in the order of the definition. SQL writes the members that it can write, and the
 * values of the others are loaded.
 */
export interface Rendering {
  readonly kind: Kind
  /** To be selected, beside the columns of the loaded fields. */
  readonly columns: readonly Sql[]
  readonly loaded: readonly string[]
  /** The JSON of a row. `membersOf` are the members of loaded fields, `added` those of the view. */
  text(row: QueryResultRow, membersOf: (fields: readonly string[]) => Members, added: Members): string
}

type Piece = string | { readonly fields: string[] } // a column with text, or loaded fields

/** With all members. */
export const renderingOf = memoized((kind: Kind) => rendering(kind, undefined))
/** With those that the client API shows. */
export const clientRenderingOf = memoized((kind: Kind) => rendering(kind, clientMembers(kind.entity)))

function rendering(kind: Kind, only: readonly string[] | undefined): Rendering {
  const { entity, seams } = kind
  const isShown = (name: string): boolean => only?.includes(name) ?? true
  const pick = (members: Members): Members =>
    only ? Object.fromEntries(Object.entries(members).filter(([name]) => isShown(name))) : members
  const links = linksWriter(entity)
  const columns: Sql[] = [...links.columns]
  const pieces: Piece[] = []
  let written: Sql[] = []
  const endText = (): void => {
    if (written.length === 0) return
    const name = `json_${columns.length}`
    columns.push(sql`${join(written, ' || ')} as ${raw(name)}`)
    pieces.push(name)
    written = []
  }

  const replaced = namesOfView(entity)
  const loaded: string[] = []
  for (const [name, one] of shownFieldsOf(entity)) {
    const isPlain = !one.ref && !one.rolesOf && !name.includes('.') && !replaced.has(name)
    const json = isPlain ? jsonColumn(raw(columnOf(name, one)), one) : undefined
    if (json && isShown(name)) written.push(member(name, json))
    if (json) continue
    endText()
    loaded.push(name)
    const before = pieces.at(-1)
    if (typeof before === 'object') before.fields.push(name)
    else pieces.push({ fields: [name] })
  }
  for (const [name, json] of Object.entries<Sql>(seams.members ?? {}))
    if (isShown(name)) written.push(sql`coalesce(${member(name, json)}, '')`)
  endText()

  return {
    kind,
    columns,
    loaded,
    text(row, membersOf, added) {
      let text = links.text(row)
      let rest = added
      for (const piece of pieces) {
        if (typeof piece === 'string') {
          text += unmarked(row[piece])
          continue
        }
        const members = { ...membersOf(piece.fields) }
        for (const name of Object.keys(members)) {
          if (!(name in added)) continue
          const { [name]: value, ...others } = rest
          members[name] = value
          rest = others
        }
        text += inside(pick(members))
      }
      return `${text}${inside(pick(rest))}}`
    },
  }
}

const base = {
  createdAt: field.datetime(),
  id: field.string(),
  tags: field.map(),
  updatedAt: field.datetime(),
}

const shownFieldsOf = ({ fields }: Entity): readonly [string, Field][] => [
  ...Object.entries<Field>(base),
  ...Object.entries(fields).filter(([, { secret, hidden }]) => !secret && !hidden),
]

/** The members that the view may return. */
function namesOfView({
  shows: { always, sometimes, fabric, clients },
  variants,
}: Entity): ReadonlySet<string> {
  const ofVariants = Object.values(variants?.of ?? {}).map(({ shows }) => ({
    ...shows.always,
    ...shows.sometimes,
  }))
  const all = Object.assign({}, always, sometimes, fabric, clients?.sometimes, ...ofVariants)
  return new Set(Object.keys(all))
}

const member = (name: string, json: Sql): Sql => sql`${raw(`',"${name}":'`)} || ${json}`

/** Members in the middle of an object. */
function inside(members: Members): string {
  const text = JSON.stringify(members)
  return text === '{}' ? '' : `,${text.slice(1, -1)}`
}

/** Writes `_links`, which repeat the id. */
function linksWriter(entity: Entity) {
  const names = ['id', ...new Set(Object.values(entity.links).flatMap((link) => link.at ?? []))]
  return {
    columns: names.map((name, place) => {
      const one = entity.fields[name]
      return sql`${raw(one ? columnOf(name, one) : name)} as ${raw(`link_${place}`)}`
    }),
    text(row: QueryResultRow): string {
      const ids = Object.fromEntries(names.map((name, place) => [name, row[`link_${place}`]]))
      return `{"_links":${JSON.stringify(linksOf(entity, row.link_0, ids))}`
    },
  }
}
