import { authPolicy } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { type Kind, kind } from '@overlay/store/kind-store'
import { refuseLockoutByMethods } from '../store/admins.js'
import { identitiesUnder, shareSigners } from '../store/auth-policies.js'
import { markSessionsToEnd } from '../store/session-ends.js'

const shortestPassword = 5
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
    const existing = await shareSigners(tx, second === null ? allowed : [...allowed, second])
    // differs: also on patch
    const unknown = allowed.findIndex((id) => !existing.has(id))
    if (unknown >= 0)
      throw unknownSigner(`primary.extJwt.allowedExtJwtSigners[${unknown}]`, allowed[unknown] ?? '')
    if (second !== null && !existing.has(second))
      throw unknownSigner('secondary.requiredExtJwtSigner', second)
    if (before && methods.some((method) => before[method] && !next[method])) {
      const allowed = { updb: next['primary.updb.allowed'], cert: next['primary.cert.allowed'] }
      await refuseLockoutByMethods(tx, next.id, allowed)
      await markSessionsToEnd(tx, next.id)
    } else if (before && admitsFewerTokens(before, next)) await markSessionsToEnd(tx, next.id)
    return {
      'primary.updb.minPasswordLength': Math.max(next['primary.updb.minPasswordLength'], shortestPassword),
      'primary.updb.maxAttempts': Math.max(next['primary.updb.maxAttempts'], 0),
      'primary.updb.lockoutDurationMinutes': Math.max(next['primary.updb.lockoutDurationMinutes'], 0),
      'secondary.requireExtJwtSigner': second,
    }
  },

  async deleting(tx, { id }) {
    const value = await identitiesUnder(tx, id)
    // the default one stays even unused: it is the fallback of new identities
    if (value.length > 0 || id === 'default') {
      const reason = 'the auth policy is referenced by identities'
      throw new Fault('CAN_NOT_DELETE_REFERENCED_ENTITY', { field: 'authPolicyId', reason, value })
    }
  },
})

interface TokenRules {
  readonly 'primary.extJwt.allowed': boolean
  readonly 'primary.extJwt.allowedSigners': readonly string[] | null
}

/** No signer in the list: all of them. */
function admitsFewerTokens(before: TokenRules, next: TokenRules): boolean {
  if (!before['primary.extJwt.allowed'] || !next['primary.extJwt.allowed'])
    return before['primary.extJwt.allowed']
  const [old, now] = [before, next].map((rules) => rules['primary.extJwt.allowedSigners'] ?? []) as [
    string[],
    string[],
  ]
  return now.length > 0 && (old.length === 0 || old.some((id) => !now.includes(id)))
}

const unknownSigner = (field: string, id: string): Fault =>
  new Fault('NOT_FOUND', { field, reason: 'no signer with this id', value: id })
