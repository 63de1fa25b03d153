import { type Entity, parseRoles, type Semantic, symbolsOf } from '@overlay/model'
import { invalid, type RoleList, type Selection } from '@overlay/rpc'
import sql, { join, raw, type Sql } from 'sql-template-tag'
import { filterColumnOf } from './filter-column.js'
import { columnOf } from './row.js'

/** The rows of a linked list: those with the ids, those that a role list selects, those with the value. */
export function selectionOf({ ids, roles, symbol, value }: Selection, entity: Entity): Sql {
  return anyOf([
    ...withId(ids),
    ...roles.flatMap((list) => selectedBy(list, entity)),
    ...(symbol === '' ? [] : withValue(symbol, value, entity)),
  ])
}

/** The `roleFilter` of a list. wire: '#all' is an ordinary attribute here. */
export function roleFilterOf(entries: readonly string[], semantic: string, entity: Entity): Sql {
  const bad = entries.filter((entry) => !/^[#@]/.test(entry) || !storable(entry))
  // differs: a bad entry or semantic is bad input, not a server error
  if (bad.length > 0)
    throw invalid(
      'roleFilter',
      'role entries must prefixed with # (to indicate role attributes) or @ (to indicate a name or id)',
      bad,
    )
  const match = semantics.find((name) => name.toLowerCase() === (semantic || 'AllOf').toLowerCase())
  if (!match) throw invalid('roleSemantic', 'roleSemantic should be one of [AllOf AnyOf]', semantic)
  const marked = (mark: string) =>
    entries.filter((entry) => entry.startsWith(mark)).map((entry) => entry.slice(1))
  return anyOf([...withId(marked('@')), ...withAttributes(marked('#'), match, entity)])
}

const semantics = ['AllOf', 'AnyOf'] as const satisfies readonly Semantic[]

function selectedBy({ roles, semantic }: RoleList, entity: Entity): Sql[] {
  const { all, attributes, ids } = parseRoles(roles)
  if (all) return [sql`true`]
  return [...withId(ids), ...withAttributes(attributes, semantic === 'AllOf' ? 'AllOf' : 'AnyOf', entity)]
}

const withId = (ids: readonly string[]): Sql[] => {
  const valid = ids.filter(storable)
  return valid.length > 0 ? [sql`id = any(${valid}::text[])`] : []
}

/** Both operators use the gin index. */
function withAttributes(attributes: readonly string[], semantic: Semantic, { fields }: Entity): Sql[] {
  const { roleAttributes } = fields
  if (!roleAttributes || attributes.length === 0) return []
  const column = raw(columnOf('roleAttributes', roleAttributes))
  return [sql`${column} ${raw(semantic === 'AllOf' ? '@>' : '&&')} ${attributes}::text[]`]
}

function withValue(name: string, value: string, entity: Entity): Sql[] {
  const symbols = symbolsOf(entity)
  if (!symbols.has(name)) throw new Error(`${entity.kind}: no symbol '${name}' to select by`)
  if (!storable(value)) return []
  const { at, symbol } = filterColumnOf(name, symbols)
  return [symbol.type === 'strings' ? sql`${at} @> array[${value}::text]` : sql`${at} = ${value}::text`]
}

const anyOf = (conditions: readonly Sql[]): Sql =>
  conditions.length > 0 ? sql`(${join(conditions, ' or ')})` : sql`false`

/** Postgres has no text with a zero character, and refuses to compare with one. */
const storable = (text: string): boolean => !text.includes('\0')
