import { type Entity, edgeRouterPolicy, serviceEdgeRouterPolicy, servicePolicy, snake } from '@overlay/model'
import type { RowChange } from '@overlay/store/change-log'
import { changeOf, columnsOf, rowOf, tableOf } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import sql, { join, raw, type Sql } from 'sql-template-tag'

const policies: readonly Entity[] = [servicePolicy, edgeRouterPolicy, serviceEdgeRouterPolicy]

/** A column of a policy that names entities of one kind by id. */
export interface RoleColumn {
  readonly policy: Entity
  readonly column: string
  /** Kind of the entities. */
  readonly rolesOf: string
}

export const roleColumns: readonly RoleColumn[] = policies.flatMap((policy) =>
  Object.entries(policy.fields).flatMap(([name, { rolesOf }]) =>
    rolesOf === undefined ? [] : [{ policy, column: snake(name), rolesOf }],
  ),
)

const columnsOfRoles = (policy: Entity, kind: string): readonly string[] =>
  roleColumns.flatMap((one) => (one.policy === policy && one.rolesOf === kind ? [one.column] : []))

/** Selects the ids of a kind that policies name. */
export const idsInRoles = (kind: string): Sql =>
  join(
    roleColumns
      .filter(({ rolesOf }) => rolesOf === kind)
      .map(
        ({ policy, column }) => sql`
          select substr(role, 2) as id from ${tableOf(policy)}, unnest(${raw(column)}) as role where role like '@%'`,
      ),
    ' union ',
  )

/**
 * Removes deleted entities from all policies. wire: this is no update of the policies, their `updatedAt` stays, and
 * system policies lose them too. The system policy of a router keeps its own: it comes and goes with the router.
 */
export async function dropRoles(tx: Tx, kind: string, ids: readonly string[]): Promise<RowChange[]> {
  if (ids.length === 0) return []
  const roles = new Set(ids.map((id) => `@${id}`))
  const changes: RowChange[] = []
  for (const policy of policies) {
    const columns = columnsOfRoles(policy, kind)
    if (columns.length === 0) continue
    const naming = join(
      columns.map((column) => sql`${raw(column)} && ${[...roles]}::text[]`),
      ' or ',
    )
    const { rows } = await tx.query(sql`
      select ${columnsOf(policy)} from ${tableOf(policy)}
       where (${naming}) and not (is_system and id = any(${ids})) order by id for update`)
    for (const row of rows) {
      const left = Object.fromEntries(
        columns.map((column) => [column, (row[column] as string[]).filter((role) => !roles.has(role))]),
      )
      const sets = join(columns.map((column) => sql`${raw(column)} = ${left[column]}::text[]`))
      await tx.query(sql`update ${tableOf(policy)} set ${sets} where id = ${row.id}`)
      changes.push(changeOf(policy, row.id, rowOf(policy, row), rowOf(policy, { ...row, ...left })))
    }
  }
  return changes
}
