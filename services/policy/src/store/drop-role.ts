import { type Entity, edgeRouterPolicy, serviceEdgeRouterPolicy, servicePolicy, snake } from '@overlay/model'
import { changeOf, columnsOf, type RowChange, rowOf, type Tx, tableOf } from '@overlay/platform'
import sql, { join, raw, type Sql } from 'sql-template-tag'

/** The kinds whose rows name others in role lists. */
export const policies: readonly Entity[] = [servicePolicy, edgeRouterPolicy, serviceEdgeRouterPolicy]

const listsOf = (policy: Entity, kind: string): readonly string[] =>
  Object.entries(policy.fields).flatMap(([name, { rolesOf }]) => (rolesOf === kind ? [snake(name)] : []))

/** Selects the ids of a kind that policies name. */
export const idsInRoles = (kind: string): Sql =>
  join(
    policies.flatMap((policy) =>
      listsOf(policy, kind).map(
        (list) => sql`
          select substr(role, 2) as id from ${tableOf(policy)}, unnest(${raw(list)}) as role where role like '@%'`,
      ),
    ),
    ' union ',
  )

/**
 * An entity is gone: no policy names it any more. wire: this is no update of the policies, their time of it stays,
 * and system policies lose it too.
 */
export async function dropRole(tx: Tx, kind: string, id: string): Promise<RowChange[]> {
  const role = `@${id}`
  const changes: RowChange[] = []
  for (const policy of policies) {
    for (const column of listsOf(policy, kind)) {
      const { rows } = await tx.query(
        sql`select ${columnsOf(policy)} from ${tableOf(policy)}
             where ${raw(column)} @> array[${role}]::text[] order by id for update`,
      )
      for (const row of rows) {
        const left = (row[column] as string[]).filter((entry) => entry !== role)
        await tx.query(
          sql`update ${tableOf(policy)} set ${raw(column)} = ${left}::text[] where id = ${row.id}`,
        )
        changes.push(changeOf(policy, row.id, rowOf(policy, row), rowOf(policy, { ...row, [column]: left })))
      }
    }
  }
  return changes
}
