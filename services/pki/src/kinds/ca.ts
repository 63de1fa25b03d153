import { ca, claimOf, linksOf } from '@overlay/model'
import { type Kind, kind, newId } from '@overlay/platform/kind-store'
import { Fault, invalid } from '@overlay/rpc'
import { authorityFingerprint, CaError, checkClaim, defaultNameFormat } from '../domain/ca.js'
import { type Ca, caWithFingerprint } from '../store/cas.js'
import { endOfCa } from '../store/enrollments.js'

export const cas: Kind = kind(ca, {
  async view(_, rows) {
    return rows.map((row) => {
      const claim = claimOf(row)
      const { verificationToken } = row
      return { _links: caLinks(row), verificationToken, ...(claim && { externalIdClaim: claim }) }
    })
  },

  async writing(tx, next, before) {
    const claim = claimOf(next)
    if (claim) {
      // wire: this mistake alone has a code of its own
      if (claim.matcher === 'SCHEME' && claim.location !== null && claim.location !== 'SAN_URI')
        throw new Fault('REFERENCED_ENTITY_NOT_FOUND', 'matcher SCHEME can only be used with SAN_URI')
      refusing(() => checkClaim(claim), next)
    }
    const identityNameFormat = next.identityNameFormat || defaultNameFormat
    if (before) return { identityNameFormat }
    // differs: no certificate, or one that is no authority's, is bad input, not a server error
    const fingerprint = refusing(() => authorityFingerprint(next.certPem), next)
    const known = await caWithFingerprint(tx, fingerprint)
    if (known) throw invalid('certPem', `certificate already used as CA ${known.id}`, next.certPem)
    return { identityNameFormat, fingerprint, verificationToken: newId('short') }
  },

  async deleting(tx, { id }, { also }) {
    for (const change of await endOfCa(tx, id)) also(change)
  },
})

/** wire: these two lead somewhere only while there is something to do. */
export function caLinks({ id, isVerified, isAutoCaEnrollmentEnabled }: Ca): object {
  return {
    ...linksOf(ca, id),
    ...(!isVerified && { verify: { href: `./cas/${id}/verify` } }),
    ...(isAutoCaEnrollmentEnabled && { jwt: { href: `./cas/${id}/jwt` } }),
  }
}

function refusing<T>(check: () => T, values: object): T {
  try {
    return check()
  } catch (err) {
    if (!(err instanceof CaError)) throw err
    throw invalid(err.field, err.message, (values as Readonly<Record<string, unknown>>)[err.field])
  }
}
