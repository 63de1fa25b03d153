import { claimOf } from '@overlay/model'
import { chainOf, fingerprintOf, hasBegun, isWithin } from '../domain/chain.js'
import { claimIn } from '../domain/claims.js'
import { bindExternalId } from '../store/external-id-authorities.js'
import { subjectByExternalId, subjectByFingerprint } from '../store/subjects.js'
import { about, type Login, type Step } from './login.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const certificateIsPresented: Step = ({ certificates }) =>
  certificates.length > 0 ? undefined : 'no certificate'

/** An authority may be younger than what is remembered: who fails is looked at again, with an answer of this second. */
const freshMs = 1000

const chainIsTrusted: Step = async (login) => {
  const { certificates, trust, now } = login
  for (const maxAgeMs of [undefined, freshMs])
    if (chainOf(certificates, await trust.certificates(maxAgeMs), now)) return undefined
  return (await isVouchedFor(login)) ? undefined : 'untrusted certificate'
}

async function isVouchedFor(login: Login): Promise<boolean> {
  const { authorities, certificates, context, now } = login
  const all = await authorities.all(context.signal)
  const admitting = all.filter(({ isVerified, isAuthEnabled }) => isVerified && isAuthEnabled)
  const vouched = authorities.vouching(admitting, certificates, now)
  if (vouched) login.ca = vouched.ca
  return vouched !== undefined
}

/** wire: a claim decides alone; only where there is none does the certificate itself. */
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

// differs: a policy that admits expired certificates does not admit those whose time has not come
const isWithinItsDates: Step = about(({ areExpiredCertsAllowed }, { certificates: [leaf], now }) => {
  if (!leaf) return 'no certificate'
  return (areExpiredCertsAllowed ? hasBegun(leaf, now) : isWithin(leaf, now))
    ? undefined
    : 'certificate out of date'
})

/** Last, because it stays. differs: one authority vouches for an external id, the first that does. */
const externalIdIsBound: Step = about(async ({ identityId, unboundExternalId, caId }, { changeLog }) => {
  if (unboundExternalId === undefined || caId === null) return undefined
  const isBound = await bindExternalId(changeLog.db, identityId, unboundExternalId, caId)
  return isBound ? undefined : 'untrusted certificate'
})

/** The order of checks. */
export const certificate: readonly Step[] = [
  certificateIsPresented,
  chainIsTrusted,
  findSubject,
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isCertAllowed }) => isCertAllowed),
  isWithinItsDates,
  externalIdIsBound,
]
