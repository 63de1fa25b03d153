import { claimOf } from '@overlay/model'
import { Fault } from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import { hasBegun, isWithin } from '../domain/chain.js'
import { claimIn } from '../domain/claims.js'
import { AUTHORITY_FRESH_MS } from '../limits.js'
import { bindExternalId, subjectByExternalId, subjectByFingerprint } from '../store/subjects.js'
import { about, identityIsEnabled, type Login, policyAllows, type Step, subjectIsKnown } from './login.js'

const certificateIsPresented: Step = ({ certificates }) =>
  certificates.length > 0 ? undefined : 'no certificate'

const chainIsTrusted: Step = async (login) => {
  const { certificates, trust, chains, context, now } = login
  let { untrustedBy } = login
  for (const maxAgeMs of [undefined, AUTHORITY_FRESH_MS]) {
    const trusted = await trust.certificates(maxAgeMs)
    if (trusted === untrustedBy) continue
    if (await chains.find(certificates, trusted, context, now)) return undefined
    untrustedBy = trusted
  }
  if (login.isLeafAlone) throw new Fault('CHAIN_REQUIRED')
  return (await isIssuedByAuthority(login)) ? undefined : 'untrusted certificate'
}

async function isIssuedByAuthority(login: Login): Promise<boolean> {
  const { authorities, certificates, context, now } = login
  const all = await authorities.all(context.signal)
  const admitting = all.filter(({ isVerified, isAuthEnabled }) => isVerified && isAuthEnabled)
  const ca = await authorities.issuerOf(admitting, certificates, context, now)
  if (ca) login.ca = ca
  return ca !== undefined
}

/**
 * wire: if the authority has a claim and the certificate contains it, the external id alone names the identity, also
 * where the certificate is an authenticator; otherwise the fingerprint does.
 */
const findSubject: Step = async (login) => {
  const { certificates, ca, changeLog } = login
  const [leaf] = certificates
  if (!leaf) return 'no certificate'
  const claim = ca && claimOf(ca)
  const externalId = claim && claimIn(leaf, claim)
  login.subject =
    ca && externalId
      ? await subjectByExternalId(changeLog.db, externalId, ca.id)
      : await subjectByFingerprint(changeLog.db, fingerprintOf(leaf))
  return undefined
}

// differs: a policy that admits expired certificates does not admit those that are not valid yet
const isWithinItsDates: Step = about(({ areExpiredCertsAllowed }, { certificates: [leaf], now }) => {
  if (!leaf) return 'no certificate'
  return (areExpiredCertsAllowed ? hasBegun(leaf, now) : isWithin(leaf, now))
    ? undefined
    : 'certificate out of date'
})

/** The last step, because it writes. differs: an external id is bound to the first authority that certifies it. */
const externalIdIsBound: Step = about(async ({ identityId, unboundExternalId, caId }, { changeLog }) => {
  if (unboundExternalId === undefined || caId === null) return undefined
  const isBound = await bindExternalId(changeLog.db, identityId, unboundExternalId, caId)
  return isBound ? undefined : 'untrusted certificate'
})

/** The order of checks. */
export const certificateSteps: readonly Step[] = [
  certificateIsPresented,
  chainIsTrusted,
  findSubject,
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isCertAllowed }) => isCertAllowed),
  isWithinItsDates,
  externalIdIsBound,
]
