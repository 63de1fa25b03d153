import { authPolicy, identityType } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { noteSessionsToEnd } from '../store/api-sessions.js'
import { refuseShuttingOutBy } from '../store/default-admin.js'

const shortestPassword = 5
const mostNamed = 10
const methods = ['primary.cert.allowed', 'primary.updb.allowed'] as const

export const authPolicies: Kind = kind(authPolicy, {
  async view(_db, rows) {
    return rows.map((row) => ({
      secondary: {
        ...(row['secondary.requireExtJwtSigner'] !== null && {
          requireExtJwtSigner: row['secondary.requireExtJwtSigner'],
        }),
        requireTotp: row['secondary.requireTotp'],
      },
    }))
  },

  async writing(tx, next, before) {
    const allowed = next['primary.extJwt.allowedSigners'] ?? []
    const second = next['secondary.requireExtJwtSigner'] || null
    const known = await knownSigners(tx, second === null ? allowed : [...allowed, second])
    // differs: also on patch
    const unknown = allowed.findIndex((id) => !known.has(id))
    if (unknown >= 0)
      throw unknownSigner(`primary.extJwt.allowedExtJwtSigners[${unknown}]`, allowed[unknown] ?? '')
    if (second !== null && !known.has(second)) throw unknownSigner('secondary.requiredExtJwtSigner', second)
    if (before && methods.some((method) => before[method] && !next[method])) {
      const allowed = { updb: next['primary.updb.allowed'], cert: next['primary.cert.allowed'] }
      await refuseShuttingOutBy(tx, next.id, allowed)
      await noteSessionsToEnd(tx, next.id)
    }
    return {
      'primary.updb.minPasswordLength': Math.max(next['primary.updb.minPasswordLength'], shortestPassword),
      'primary.updb.maxAttempts': Math.max(next['primary.updb.maxAttempts'], 0),
      'primary.updb.lockoutDurationMinutes': Math.max(next['primary.updb.lockoutDurationMinutes'], 0),
      'secondary.requireExtJwtSigner': second,
    }
  },

  async deleting(tx, { id }) {
    const { rows } = await tx.query<{ id: string }>(sql`
      select id from identity where auth_policy_id = ${id} order by id limit ${mostNamed}`)
    // the default one stays, though nobody may have it: identities fall back to it
    if (rows.length > 0 || id === 'default') {
      const reason = 'the auth policy is referenced by identities'
      const value = rows.map((row) => row.id)
      throw new Fault('CAN_NOT_DELETE_REFERENCED_ENTITY', { field: 'authPolicyId', reason, value })
    }
  },
})

/** They stay for as long as this transaction: whoever deletes one waits. */
async function knownSigners(tx: Tx, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const { rows } = await tx.query<{ id: string }>(sql`
    select id from external_jwt_signer where id = any(${ids}) order by id for key share`)
  return new Set(rows.map(({ id }) => id))
}

const unknownSigner = (field: string, id: string): Fault =>
  new Fault('NOT_FOUND', { field, reason: 'no signer with this id', value: id })

export const identityTypes: Kind = kind(identityType)
