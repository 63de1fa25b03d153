import { identity, service } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { Fault, invalid, notFound } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { endSessions, endSessionsOutside } from '../store/api-sessions.js'
import { removeAuthenticators } from '../store/authenticators.js'
import { refuseShuttingOutUnder } from '../store/default-admin.js'
import { unbindExternalId } from '../store/external-id-authorities.js'
import { hostingMembers, refuseUnknown, servicesIn } from './hosting.js'
import { identityView, type Joined, joined, type Others } from './identity-view.js'

/** What the original knows as the identity of a tunneling router. It comes and goes with the router. */
const routerType = 'Router'

export const identities = (others: Others): Kind =>
  kind<typeof identity, Joined>(identity, {
    // an admin sees all, everybody else itself
    scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`id = ${identityId}`),

    joined,
    view: identityView(others),

    // creates do not come here: they are gathered
    async writing(tx, next, before, { also, exists, isWritten }) {
      if (!before) throw new Error('identities are not created one by one')
      const hosting = hostingMembers.filter(isWritten).map((member) => [member, next[member]])
      refuseUnknown(servicesIn(Object.fromEntries(hosting)), (id) => exists(service.kind, id))
      if (before.type === routerType && next.name !== before.name)
        throw invalid('name', 'the name of a router identity follows its router', next.name)
      const authPolicyId = next.authPolicyId || 'default'
      if (authPolicyId !== before.authPolicyId) {
        await policyExists(tx, authPolicyId)
        await refuseShuttingOutUnder(tx, next.id, authPolicyId)
        for (const change of await endSessionsOutside(tx, next.id, authPolicyId)) also(change)
      }
      const externalId = next.externalId || null
      if (externalId !== before.externalId) await unbindExternalId(tx, next.id)
      return {
        type: before.type,
        authPolicyId,
        externalId,
        enrollment: before.enrollment,
      }
    },

    async deleting(tx, { id, type, isDefaultAdmin }, { also }) {
      if (isDefaultAdmin) throw new Fault('ENTITY_CAN_NOT_BE_DELETED')
      if (type === routerType)
        throw new Fault('ENTITY_CAN_NOT_BE_DELETED', 'the identity of a router goes with the router')
      for (const change of await endSessions(tx, sql`identity_id = ${id}`)) also(change)
      for (const change of await removeAuthenticators(tx, sql`identity_id = ${id}`)) also(change)
    },
  })

async function policyExists(tx: Tx, id: string): Promise<void> {
  const { rows } = await tx.query(sql`select from auth_policy where id = ${id} for key share`)
  if (rows.length === 0) throw notFound('authPolicy', id)
}
