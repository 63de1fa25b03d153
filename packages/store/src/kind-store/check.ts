import { type Entity, kinds } from '@overlay/model'
import { invalid } from '@overlay/rpc'
import { idsIn } from './references.js'
import type { AnyValues } from './row.js'
import type { LockedReferences } from './seams.js'

/** Refuses attributes and role entries that no kind accepts, in the members that the request sets. */
export function checkWords(entity: Entity, values: AnyValues, written: ReadonlySet<string>): void {
  for (const [name, { attributes, rolesOf }] of listsOf(entity, written)) {
    const entries = entriesOf(values, name)
    if (attributes) checkAttributes(name, entries)
    if (rolesOf) checkFormat(name, entries)
  }
}

/** Refuses roles that name entities which do not exist. */
export function checkRoles(
  entity: Entity,
  values: AnyValues,
  written: ReadonlySet<string>,
  exists: LockedReferences['exists'],
): void {
  for (const [name, { rolesOf }] of listsOf(entity, written)) {
    if (!rolesOf) continue
    const missing = idsIn(entriesOf(values, name)).filter((id) => !exists(rolesOf, id))
    if (missing.length > 0)
      throw invalid(name, `no ${kinds.get(rolesOf)?.plural ?? rolesOf} found with the given ids`, missing)
  }
}

const listsOf = ({ fields }: Entity, written: ReadonlySet<string>) =>
  Object.entries(fields).filter(([name]) => written.has(name))

const entriesOf = (values: AnyValues, name: string): readonly string[] =>
  ((values as Record<string, unknown>)[name] ?? []) as readonly string[]

function checkAttributes(name: string, attributes: readonly string[]): void {
  for (const attribute of attributes) {
    if (attribute.startsWith('#') || attribute.startsWith('@'))
      throw invalid(name, 'role attributes may not be prefixed with #', attribute)
    // differs: an empty attribute is bad input, not a server error
    if (attribute === '') throw invalid(name, 'role attributes may not be empty', attribute)
  }
}

function checkFormat(name: string, roles: readonly string[]): void {
  if (roles.length > 1 && roles.includes('#all'))
    throw invalid(name, 'if using #all, it should be the only role specified', roles)
  const unmarked = roles.filter((role) => !role.startsWith('#') && !role.startsWith('@'))
  if (unmarked.length > 0) {
    const reason =
      'role entries must prefixed with # (to indicate role attributes) or @ (to indicate a name or id)'
    throw invalid(name, reason, unmarked)
  }
}
