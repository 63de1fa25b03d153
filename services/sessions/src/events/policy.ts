import type { Effects } from '@overlay/platform'
import sql from 'sql-template-tag'
import { type AskPolicy, endLost, endSessions } from './lost-access.js'

/** A session ends with its service, and when a policy takes the service away. */
export const policyEffects = (policy: AskPolicy): Effects => ({
  kinds: ['services', 'service-policies'],

  async apply(tx, changes, upto) {
    const services = changes.filter(({ kind }) => kind === 'services')
    const gone = services.filter(({ json }) => json.length === 0).map(({ id }) => id)
    const ended = await endSessions(tx, sql`service_id = any(${gone})`)
    const ids = services.map(({ id }) => id)
    const which = changes.length > services.length ? sql`true` : sql`service_id = any(${ids})`
    return [...ended, ...(await endLost(tx, policy, which, { policy: upto }))]
  },

  reload: (tx, _rows, upto) => endLost(tx, policy, sql`true`, { policy: upto }),
})
