import { externalJwtSigner, timeText } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import { type Kind, kind } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import sql from 'sql-template-tag'
import { onlyCertificate } from '../credentials/certificates.js'
import { commonNameOf } from '../domain/claims.js'
import { policiesNaming } from '../store/auth-policies.js'
import { markSignerEnded } from '../store/session-ends.js'

/** wire: what answers show for a date that a signer without a certificate lacks. */
const noTime = '0001-01-01T00:00:00.000Z'

export const externalJwtSigners: Kind = kind(externalJwtSigner, {
  // clients choose one before they log in
  scope: ({ isAdmin }) => (isAdmin ? sql`true` : sql`enabled`),

  async view(_, rows, { perspective }) {
    return rows.map(({ clientId, notBefore, notAfter }) => ({
      notBefore: notBefore ? timeText(notBefore) : noTime,
      notAfter: notAfter ? timeText(notAfter) : noTime,
      // wire: the client API leaves a null clientId out
      ...(perspective?.asClient && clientId === null && { clientId: undefined }),
    }))
  },

  async writing(tx, next, before) {
    const [certPem, jwksEndpoint] = [next.certPem || null, next.jwksEndpoint || null]
    const certificate = certificateMembers(certPem) // wire: a bad certificate is refused before a second source of keys
    if ((certPem === null) === (jwksEndpoint === null)) throw notExactlyOne()
    for (const field of ['jwksEndpoint', 'externalAuthUrl'] as const) refuseOtherSchemes(field, next[field])
    if (before?.enabled && !next.enabled) await markSignerEnded(tx, next.id)
    return {
      ...certificate,
      jwksEndpoint,
      kid: next.kid || null,
      externalAuthUrl: next.externalAuthUrl || null,
      claimsProperty: next.claimsProperty.trim() || 'sub',
    }
  },

  async deleting(tx, { id }) {
    await refuseReferenced(tx, id)
    await markSignerEnded(tx, id)
  },
})

/** wire: both or neither of certPem and jwksEndpoint are answered with this code. */
const notExactlyOne = (): Fault =>
  new Fault('REFERENCED_ENTITY_NOT_FOUND', 'either certPem or jwksEndpoint is required, and not both')

/**
 * differs: clients open these addresses, and one of another scheme (`javascript:`, `file:`) could act in their name.
 */
function refuseOtherSchemes(field: string, value: string | null): void {
  if (!value || (URL.canParse(value) && /^https?:$/.test(new URL(value).protocol))) return
  throw invalid(field, `${field} in body must be an http or https address`, value)
}

function certificateMembers(certPem: string | null) {
  if (certPem === null) return { certPem, commonName: '', fingerprint: null, notBefore: null, notAfter: null }
  const certificate = onlyCertificate(certPem, (_, cause) => new Fault('INVALID_CERT_PEM', undefined, cause))
  return {
    certPem,
    commonName: commonNameOf(certificate),
    fingerprint: fingerprintOf(certificate),
    notBefore: new Date(certificate.validFrom),
    notAfter: new Date(certificate.validTo),
  }
}

/** The row of the signer is locked, so that a transaction that would name it waits and finds it deleted. */
async function refuseReferenced(tx: Tx, id: string): Promise<void> {
  const policies = await policiesNaming(tx, id)
  const [first] = policies
  if (!first) return
  const field = first.isAllowed ? 'primary.extJwt.allowedSigners' : 'secondary.requireExtJwtSigner'
  const reason = 'the signer is referenced by auth policies'
  const value = policies.map((policy) => policy.id)
  throw new Fault('CAN_NOT_DELETE_REFERENCED_ENTITY', { field, reason, value })
}
