import type { RowChange, Tx } from '@overlay/platform'
import type { Change } from '@overlay/rpc'
import { withMfa } from '../domain/posture/data.js'
import { allPostureData, changePosture, postureDataOf } from '../store/posture-data.js'

/** The kind whose rows say when a code was given. */
export const PASSING = 'api-sessions'

interface Passed {
  readonly identityId: string
  /** null: none counts any more. */
  readonly mfaPassedAt: string | null
}

/** Nothing: it is about something else. */
export function passedIn({ kind, json }: Change): Passed | undefined {
  if (kind !== PASSING || json.length === 0) return undefined
  const told = JSON.parse(Buffer.from(json).toString()) as Partial<Passed>
  return told.identityId !== undefined && told.mfaPassedAt !== undefined ? (told as Passed) : undefined
}

/** After a load: what its rows do not say any more counts no more. */
export async function notePassedAnew(tx: Tx, rows: readonly Change[]): Promise<RowChange[]> {
  const passed = rows.filter((row) => passedIn(row)?.mfaPassedAt)
  const own = await notePassed(tx, passed)
  const ids = new Set(passed.map(({ id }) => id))
  for await (const { id: identityId, data } of allPostureData(tx)) {
    for (const [id, { passedMfaAt }] of Object.entries(data.apiSessions)) {
      if (passedMfaAt === undefined || ids.has(id)) continue
      own.push((await changePosture(tx, identityId, (said) => withMfa(said, id, null))).change)
    }
  }
  return own
}

/** The endpoint of the API session has it from now on. */
export async function notePassed(tx: Tx, changes: readonly Change[]): Promise<RowChange[]> {
  const own: RowChange[] = []
  for (const change of changes) {
    const passed = passedIn(change)
    if (!passed) continue
    const { identityId, mfaPassedAt } = passed
    const { apiSessions } = await postureDataOf(tx, identityId)
    if ((apiSessions[change.id]?.passedMfaAt ?? null) === mfaPassedAt) continue
    own.push((await changePosture(tx, identityId, (data) => withMfa(data, change.id, mfaPassedAt))).change)
  }
  return own
}
