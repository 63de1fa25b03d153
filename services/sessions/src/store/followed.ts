import type { Positions } from '@overlay/rpc'
import type { Db } from '@overlay/store/postgres'
import sql from 'sql-template-tag'

/** The positions up to which the changes of other schemas have taken effect here. */
export async function followedPositions(db: Db): Promise<Positions> {
  const { rows } = await db.query<{ schema: string; timeline: string; number: number }>(
    sql`select schema, timeline, number from followed where timeline is not null`,
    'followed-positions',
  )
  return Object.fromEntries(rows.map(({ schema, timeline, number }) => [schema, { timeline, number }]))
}
