import { pushAll } from '@overlay/platform/async'
import type { LoadedRows, RowChange } from '@overlay/platform/change-log'
import type { Tx } from '@overlay/platform/postgres'
import type { Change } from '@overlay/rpc'
import { withMfa } from '../domain/posture/data.js'
import { allPostureData, changePosture, postureDataOfAll } from '../store/posture-data.js'

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
export async function notePassedAnew(tx: Tx, rows: LoadedRows): Promise<RowChange[]> {
  const own: RowChange[] = []
  const ids = new Set<string>()
  for await (const page of rows.pages(PASSING)) {
    const passed = page.filter((row) => passedIn(row)?.mfaPassedAt)
    pushAll(own, await notePassed(tx, passed))
    for (const { id } of passed) ids.add(id)
  }
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
  const last = new Map<string, Passed>()
  for (const change of changes) {
    const passed = passedIn(change)
    if (passed) last.set(change.id, passed)
  }
  const ids = [...last.values()].map(({ identityId }) => identityId)
  const known = await postureDataOfAll(tx, ids)
  const own: RowChange[] = []
  for (const [apiSessionId, { identityId, mfaPassedAt }] of last) {
    const state = known.get(identityId)?.apiSessions[apiSessionId]
    if ((state?.passedMfaAt ?? null) === mfaPassedAt) continue
    const { change } = await changePosture(tx, identityId, (data) => withMfa(data, apiSessionId, mfaPassedAt))
    own.push(change)
  }
  return own
}
