import type { ChangeLog, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import { type Context, Fault, notFound, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { endSessions } from './api-sessions.js'
import { changeIdentity } from './identities.js'
import { forgetFailuresOf } from './login-attempts.js'
import type { Person } from './subjects.js'

/** After too many wrong passwords. Attempts begin anew when the lock has lapsed. */
export async function lockOut(changeLog: ChangeLog, context: Context, person: Person): Promise<void> {
  await changeLog.write(context, async (tx) => ({
    result: undefined,
    changes: await shut(tx, person.identityId, person.lockoutMinutes),
  }))
}

/** By an admin. */
export async function disable(
  changeLog: ChangeLog,
  context: Context,
  id: string,
  minutes: number,
): Promise<Position | undefined> {
  const { position } = await changeLog.write(context, async (tx) => {
    const { rows } = await tx.query<{ isDefaultAdmin: boolean }>(
      sql`select is_default_admin as "isDefaultAdmin" from identity where id = ${id}`,
    )
    if (!rows[0]) throw notFound('identity', id)
    // differs: would shut everybody out
    if (rows[0].isDefaultAdmin)
      throw new Fault('ENTITY_CAN_NOT_BE_UPDATED', 'the default admin can not be disabled')
    return { result: undefined, changes: await shut(tx, id, minutes) }
  })
  return position
}

/** By an admin: opens a lock of either kind. */
export async function enable(
  changeLog: ChangeLog,
  context: Context,
  id: string,
): Promise<Position | undefined> {
  const { position } = await changeLog.write(context, async (tx) => {
    const change = await changeIdentity(tx, id, sql`disabled_at = null, disabled_until = null`)
    if (!change) throw notFound('identity', id)
    await forgetFailuresOf(tx, id)
    return { result: undefined, changes: [change] }
  })
  return position
}

async function shut(tx: Tx, id: string, minutes: number): Promise<RowChange[]> {
  const until = minutes > 0 ? sql`now() + ${minutes}::float8 * interval '1 minute'` : sql`null`
  const change = await changeIdentity(tx, id, sql`disabled_at = now(), disabled_until = ${until}`)
  if (!change) return []
  await forgetFailuresOf(tx, id)
  return [...(await endSessions(tx, sql`identity_id = ${id}`)), change]
}
