import { authPolicy, identityType } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform'
import { Fault } from '@overlay/rpc'
import sql from 'sql-template-tag'

const shortestPassword = 5
const mostNamed = 10

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

  async writing(_tx, next) {
    const [signer] = next['primary.extJwt.allowedSigners'] ?? []
    // differs: also on patch. No signers are kept yet, so none is known.
    if (signer !== undefined) throw unknownSigner('primary.extJwt.allowedExtJwtSigners[0]', signer)
    const second = next['secondary.requireExtJwtSigner'] || null
    if (second !== null) throw unknownSigner('secondary.requiredExtJwtSigner', second)
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

const unknownSigner = (field: string, id: string): Fault =>
  new Fault('NOT_FOUND', { field, reason: 'no signer with this id', value: id })

export const identityTypes: Kind = kind(identityType)
