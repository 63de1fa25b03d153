import type { Entity } from '@overlay/model'
import type { JsonSchema } from '../http/body.js'
import { baseNameOf } from '../openapi/names.js'
import {
  listOf,
  type Members,
  named,
  object,
  ofEveryKind,
  oneOf,
  reference,
  text,
} from '../openapi/schemas.js'
import { variable } from '../openapi/variants.js'
import { views } from '../openapi/views.js'

const displayed = named('namedRoles', listOf(named('namedRole', object({ name: text, role: text }))))

/** What reads of a kind show, for the served documents. */
export function listedSchemaOf(entity: Entity): JsonSchema {
  const { variants } = views[entity.kind] ?? {}
  const base = baseNameOf(entity)
  if (!variants) return named(`${base}Detail`, shownBy(entity))
  const { by, of } = variants
  const forms = Object.entries(of).map(([word, { title, always, sometimes }]) =>
    named(`${base}${title}Detail`, shownBy(entity, { [by]: oneOf(word), ...always }, sometimes)),
  )
  return variable(`${base}Detail`, by, forms)
}

/** The same, where clients see less. */
export const clientSchemaOf = (entity: Entity, title: string): JsonSchema =>
  named(
    title,
    shownBy(entity, {}, views[entity.kind]?.sometimesForClients, [
      ...Object.keys(ofEveryKind),
      ...(entity.clientSees ?? []),
    ]),
  )

function shownBy(
  entity: Entity,
  also: Members = {},
  alsoSometimes: Members = {},
  only?: readonly string[],
): JsonSchema {
  const { always, sometimes } = views[entity.kind] ?? {}
  const seen = (members: Members = {}): Members =>
    only ? Object.fromEntries(Object.entries(members).filter(([name]) => only.includes(name))) : members
  return object(
    seen({ ...ofEveryKind, ...ownOf(entity), ...always, ...also }),
    seen({ ...sometimes, ...alsoSometimes }),
  )
}

/** The columns that reads show; names with dots are members of objects. */
function ownOf(entity: Entity): Members {
  const shown = Object.entries(entity.fields).filter(([, { secret, hidden }]) => !secret && !hidden)
  return nested(
    shown.flatMap(([name, { schema, ref, rolesOf }]): Placed[] => [
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
