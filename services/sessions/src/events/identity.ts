import type { Effects } from '@overlay/platform'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { type AskPolicy, endLost, endSessions } from './lost-access.js'

const idsOf = (changes: readonly Change[], kind: string, gone: boolean): string[] =>
  changes.filter((change) => change.kind === kind && (change.json.length === 0) === gone).map(({ id }) => id)

/** Whatever is gone, and identities that may have lost something. */
function mayEndSessions({ kind, json }: Change): boolean {
  if (json.length === 0) return true
  if (kind !== 'identities') return false
  return !(JSON.parse(Buffer.from(json).toString()) as { readonly isNew?: boolean }).isNew
}

/** A session ends with its API session and its identity, and when the identity loses the service. */
export const identityEffects = (policy: AskPolicy): Effects => ({
  kinds: ['identities', 'api-sessions'],
  concerns: mayEndSessions,

  async apply(tx, changes, upto) {
    const ended = await endSessions(
      tx,
      sql`api_session_id = any(${idsOf(changes, 'api-sessions', true)})
          or identity_id = any(${idsOf(changes, 'identities', true)})`,
    )
    const changed = idsOf(changes, 'identities', false)
    if (changed.length === 0) return ended
    const positions = { identity: upto }
    return [...ended, ...(await endLost(tx, policy, sql`identity_id = any(${changed})`, positions))]
  },

  async reload(tx, rows, upto) {
    const ended = await endSessions(tx, sql`api_session_id not in (${rows.ids('api-sessions')})`)
    return [...ended, ...(await endLost(tx, policy, sql`true`, { identity: upto }))]
  },
})
