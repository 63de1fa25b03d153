import {
  commonMembers,
  type JsonSchema,
  listOf,
  type Members,
  named,
  object,
  oneOf,
  reference,
  texts,
  variable,
} from './schema.js'
import type { Entity } from './types.js'

const displayed = named('namedRoles', listOf(named('namedRole', object(texts('name', 'role')))))

/** The schema of what reads show of a kind. */
export function readSchemaOf(entity: Entity): JsonSchema {
  const { shows, variants } = entity
  const { title } = entity.published
  if (!variants) return named(`${title}Detail`, object(alwaysOf(entity), shows.sometimes))
  const { by, of } = variants
  const forms = Object.entries(of)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, variant]) => {
      const always = { ...alwaysOf(entity), [by]: oneOf(word), ...variant.shows.always }
      return named(
        `${title}${variant.title}Detail`,
        object(always, { ...shows.sometimes, ...variant.shows.sometimes }),
      )
    })
  return variable(`${title}Detail`, by, forms)
}

/** The schema of what the client API shows of a kind, where it shows less. */
export function clientSchemaOf(entity: Entity): JsonSchema {
  const { sometimes, clients } = entity.shows
  if (!clients) return readSchemaOf(entity)
  const shown = new Set(clientMembers(entity))
  const pick = (members: Members): Members =>
    Object.fromEntries(Object.entries(members).filter(([name]) => shown.has(name)))
  return named(clients.title, object(pick(alwaysOf(entity)), pick({ ...sometimes, ...clients.sometimes })))
}

/** The members that the client API shows, where it shows less than all. */
export const clientMembers = ({ shows: { clients } }: Entity): readonly string[] | undefined =>
  clients && [...Object.keys(commonMembers), ...clients.members]

const alwaysOf = (entity: Entity): Members => ({
  ...commonMembers,
  ...membersOfFields(entity),
  ...entity.shows.always,
})

/** Names with dots are members of objects. */
function membersOfFields(entity: Entity): Members {
  const fields = Object.entries(entity.fields).filter(([, { secret, hidden }]) => !secret && !hidden)
  return nested(
    fields.flatMap(([name, { schema, ref, rolesOf }]): Placed[] => [
      [name.split('.'), schema],
      ...(ref ? [[name.replace(/Id$/, '').split('.'), reference] as const] : []),
      ...(rolesOf ? [[`${name}Display`.split('.'), displayed] as const] : []),
    ]),
  )
}

type Placed = readonly [path: readonly string[], schema: JsonSchema]

function nested(members: readonly Placed[]): Members {
  const names = new Set(members.map(([[first = '']]) => first))
  const memberOf = (name: string): JsonSchema => {
    const here = members.filter(([[first]]) => first === name)
    const leaf = here.findLast(([path]) => path.length === 1)
    return leaf ? leaf[1] : object(nested(here.map(([path, schema]) => [path.slice(1), schema])))
  }
  return Object.fromEntries([...names].map((name) => [name, memberOf(name)]))
}
