import { randomUUID } from 'node:crypto'
import type { ChangeLog } from '@overlay/platform/change-log'
import { onlyRow, type Tx } from '@overlay/platform/postgres'
import { type Context, invalid, notFound } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { goDuration } from '../domain/go-duration.js'

interface Wanted {
  readonly id: string
  readonly enabled: boolean
  readonly duration: string
  readonly traceId: string
  readonly channels: readonly string[]
}

type Kept = { readonly traceId: string; readonly channels: readonly string[]; readonly until: Date }

const columns = sql`trace_id as "traceId", channels, until`

/** The last wish counts: it replaces the one before, or ends it. */
export async function traceIdentity(
  changeLog: ChangeLog,
  context: Context,
  wanted: Wanted,
): Promise<{ traceId: string; untilMs: number }> {
  const { result } = await changeLog.write(context, async (tx) => {
    const { id, enabled } = wanted
    const found = await tx.query(sql`select from identity where id = ${id} for key share`)
    // differs: the original answers a server error
    if (found.rows.length === 0) throw notFound('identity', id)
    const gone = await tx.query<Kept>(
      sql`delete from identity_trace where identity_id = ${id} returning ${columns}`,
    )
    const before = gone.rows[0] ?? null
    if (!enabled && !before) return { result: null, changes: [] }
    const after = enabled ? await keep(tx, wanted) : null
    return { result: after, changes: [{ kind: 'identity-traces', id, before, after }] }
  })
  return result ? { traceId: result.traceId, untilMs: result.until.getTime() } : { traceId: '', untilMs: 0 }
}

async function keep(tx: Tx, { id, duration, traceId, channels }: Wanted): Promise<Kept> {
  const ms = goDuration(duration)
  if (ms === undefined) throw invalid('duration', `time: invalid duration "${duration}"`, duration)
  const { rows } = await tx.query<Kept>(sql`
    insert into identity_trace (identity_id, trace_id, channels, until)
    values (${id}, ${traceId || randomUUID()}, ${channels.includes('all') ? [] : [...channels]},
            now() + ${ms}::float8 * interval '1 millisecond')
 returning ${columns}`)
  return onlyRow(rows)
}
