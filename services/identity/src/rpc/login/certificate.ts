import { chainOf, fingerprintOf, hasBegun, isWithin } from '../../domain/chain.js'
import { subjectByFingerprint } from '../../store/subjects.js'
import { about, type Step } from './login.js'
import { identityIsEnabled, policyAllows, subjectIsKnown } from './steps.js'

const certificateIsPresented: Step = ({ certificates }) =>
  certificates.length > 0 ? undefined : 'no certificate'

const chainIsTrusted: Step = async ({ certificates, trust, now }) =>
  chainOf(certificates, await trust.certificates(), now) ? undefined : 'untrusted certificate'

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
