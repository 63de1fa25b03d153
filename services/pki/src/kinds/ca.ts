import { ca, claimOf, linksOf } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import type { WaitForFollowers } from '@overlay/store/change-log'
import { type Kind, kind, newId } from '@overlay/store/kind-store'
import { authorityFingerprint, CaError, checkClaim, defaultNameFormat } from '../domain/ca.js'
import { type Ca, findCaByFingerprint } from '../store/cas.js'
import { endEnrollmentsOfCa } from '../store/ended-enrollments.js'

export const cas = (waitForFollowers: WaitForFollowers): Kind =>
  kind(
    ca,
    {
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
          refuseInvalid(() => checkClaim(claim), next)
        }
        const identityNameFormat = next.identityNameFormat || defaultNameFormat
        if (before) return { identityNameFormat }
        // differs: no certificate, or one that is no authority's, is bad input, not a server error
        const fingerprint = refuseInvalid(() => authorityFingerprint(next.certPem), next)
        const other = await findCaByFingerprint(tx, fingerprint)
        if (other) throw invalid('certPem', `certificate already used as CA ${other.id}`, next.certPem)
        return { identityNameFormat, fingerprint, verificationToken: newId('short') }
      },

      async deleting(tx, { id }, { also }) {
        for (const change of await endEnrollmentsOfCa(tx, id)) also(change)
      },
    },
    {
      operations: (uniform) => ({
        // identity deletes the authenticators of the authority, and their sessions
        delete: async (request, context) =>
          waitForFollowers(await uniform.delete(request, context), context, ['identity']),
      }),
    },
  )

/** wire: these two lead somewhere only while there is something to do. */
export function caLinks({ id, isVerified, isAutoCaEnrollmentEnabled }: Ca): ReturnType<typeof linksOf> {
  return {
    ...linksOf(ca, id),
    ...(!isVerified && { verify: { href: `./cas/${id}/verify` } }),
    ...(isAutoCaEnrollmentEnabled && { jwt: { href: `./cas/${id}/jwt` } }),
  }
}

function refuseInvalid<T>(check: () => T, values: object): T {
  try {
    return check()
  } catch (err) {
    if (!(err instanceof CaError)) throw err
    throw invalid(err.field, err.message, (values as Readonly<Record<string, unknown>>)[err.field])
  }
}
