import { chainOf, fingerprintOf, hasBegun, isWithin } from '../../domain/chain.js'
import { subjectByFingerprint } from '../../store/subjects.js'
import { about, type Step } from './login.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const certificateIsPresented: Step = ({ certificates }) =>
  certificates.length > 0 ? undefined : 'no certificate'

/** An authority may be younger than what is remembered: who fails is looked at again, with an answer of this second. */
const freshMs = 1000

const chainIsTrusted: Step = async ({ certificates, trust, now }) => {
  for (const maxAgeMs of [undefined, freshMs])
    if (chainOf(certificates, await trust.certificates(maxAgeMs), now)) return undefined
  return 'untrusted certificate'
}

const findByFingerprint: Step = async (login) => {
  const [leaf] = login.certificates
  login.subject = leaf && (await subjectByFingerprint(login.history.db, fingerprintOf(leaf)))
  return undefined
}

// differs: a policy that admits expired certificates does not admit those whose time has not come
const isWithinItsDates: Step = about(({ areExpiredCertsAllowed }, { certificates: [leaf], now }) => {
  if (!leaf) return 'no certificate'
  return (areExpiredCertsAllowed ? hasBegun(leaf, now) : isWithin(leaf, now))
    ? undefined
    : 'certificate out of date'
})

/** The order of checks. */
export const certificate: readonly Step[] = [
  certificateIsPresented,
  chainIsTrusted,
  findByFingerprint,
  subjectIsKnown,
  identityIsEnabled,
  policyAllows(({ isCertAllowed }) => isCertAllowed),
  isWithinItsDates,
]
