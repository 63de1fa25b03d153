import { type Entity, kinds } from '@overlay/model'
import { type Context, invalid } from '@overlay/rpc'
import type { AnyValues } from './row.js'
import type { Names } from './seams.js'

/** Refuses words and role entries that no kind accepts. Only members that the request sets are looked at. */
export async function checkRoles(
  entity: Entity,
  values: AnyValues,
  written: ReadonlySet<string>,
  names: Names,
  context: Context,
): Promise<void> {
  const lists = Object.entries(entity.fields).filter(([name]) => written.has(name))
  for (const [name, { attributes, rolesOf }] of lists) {
    const entries = ((values as Record<string, unknown>)[name] ?? []) as readonly string[]
    if (attributes) checkAttributes(name, entries)
    if (rolesOf) checkFormat(name, entries)
  }
  for (const [name, { rolesOf }] of lists) {
    if (!rolesOf) continue
    const entries = ((values as Record<string, unknown>)[name] ?? []) as readonly string[]
    const ids = entries.filter((entry) => entry.startsWith('@')).map((entry) => entry.slice(1))
    if (ids.length === 0) continue
    const known = await names(rolesOf, ids, context)
    const missing = ids.filter((id) => !known.has(id))
    if (missing.length > 0) throw invalid(name, `no ${wordFor(rolesOf)} found with the given ids`, missing)
  }
}

function checkAttributes(name: string, attributes: readonly string[]): void {
  for (const attribute of attributes) {
    if (attribute.startsWith('#') || attribute.startsWith('@'))
      throw invalid(name, 'role attributes may not be prefixed with #', attribute)
    // differs: an empty word is bad input, not a server error
    if (attribute === '') throw invalid(name, 'role attributes may not be empty', attribute)
  }
}

function checkFormat(name: string, roles: readonly string[]): void {
  if (roles.length > 1 && roles.includes('#all'))
    throw invalid(name, 'if using #all, it should be the only role specified', roles)
  const bare = roles.filter((role) => !role.startsWith('#') && !role.startsWith('@'))
  if (bare.length > 0) {
    const reason =
      'role entries must prefixed with # (to indicate role attributes) or @ (to indicate a name or id)'
    throw invalid(name, reason, bare)
  }
}

const wordFor = (kind: string): string =>
  kind === 'edge-routers' ? 'routers' : (kinds.get(kind)?.plural ?? kind)
