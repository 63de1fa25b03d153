import {
  AUTHORITY_PUBLISHED_MS,
  EXPIRY_CONCERN_MS,
  ISSUER_MS,
  KEY_EXTRA_MS,
  LEAF_MS,
  REPLACEMENT_LATE_MS,
} from '../limits.js'
import { isPublished, keyOf, type PlannedCertificate, type PlannedKey, type Step } from './planned-key.js'
import { dueTokenStep, rotationOf, type TokenKeyRules } from './token-key-plan.js'

export interface KeyRules {
  /** Names that the certificate of the server must have. Undefined: it keeps its names. */
  readonly hosts: readonly string[] | undefined
  /** Undefined: keys of tokens stay as they are. */
  readonly tokens: TokenKeyRules | undefined
}

/**
 * The first step that is due; undefined: none is. It follows from the keys and the time alone, so a long stop or a
 * restored database needs no special case.
 */
export const dueStep = (keys: readonly PlannedKey[], rules: KeyRules, now: Date): Step | undefined =>
  dueRemoval(keys, now) ??
  missingKey(keys) ??
  dueAuthorityStep(keys, now) ??
  dueServerStep(keys, rules.hosts ?? [], now) ??
  (rules.tokens && dueTokenStep(keys, rules.tokens, now))

/** When the key is replaced automatically; of the server's key, its certificate alone. Undefined: it is not. */
export function renewalOf(key: PlannedKey, tokens: TokenKeyRules | undefined): Date | undefined {
  if (key.state !== 'active' || key.source === 'provided') return undefined
  if (!key.certificate) return tokens && rotationOf(key, tokens)
  return key.certificate.canSign ? twoThirdsOf(key.certificate) : undefined
}

/** Why a key needs the operator. */
export function concernOf(
  key: PlannedKey,
  tokens: TokenKeyRules | undefined,
  now: Date,
): 'expires within 30 days' | 'replacement overdue' | undefined {
  const end = key.certificate?.notAfter
  if (key.state === 'retired') return undefined
  if (end && end.getTime() - now.getTime() < EXPIRY_CONCERN_MS) return 'expires within 30 days'
  const renewal = renewalOf(key, tokens)
  return renewal && now.getTime() - renewal.getTime() > REPLACEMENT_LATE_MS
    ? 'replacement overdue'
    : undefined
}

/**
 * When the last certificate that depends on an authority ends, at the latest. Undefined: there is none. Clients that
 * trust only an older root depend on it until its certificate over the newer one ends.
 */
export function neededUntil(key: PlannedKey, keys: readonly PlannedKey[], now: Date): Date | undefined {
  const { certificate, role, state, retiredAt } = key
  if (!certificate || state === 'next') return undefined
  const ends: readonly (Date | undefined)[] =
    role === 'signing'
      ? [new Date((retiredAt ?? now).getTime() + LEAF_MS)]
      : keys
          .filter((other) => other.id !== key.id)
          .flatMap((other) => {
            const below = other.certificate?.issuerId === key.id
            const crossed = other.certificate?.crossedBy === key.id
            return [
              below && (other.role === 'server' ? other.certificate.notAfter : neededUntil(other, keys, now)),
              crossed && other.certificate.notAfter,
            ].filter((end) => end !== false)
          })
  const latest = ends.reduce((last, end) => (end && (!last || end > last) ? end : last), undefined)
  return latest && latest > certificate.notAfter ? certificate.notAfter : latest
}

function dueRemoval(keys: readonly PlannedKey[], now: Date): Step | undefined {
  const over = keys.find((key) => {
    const isOrphan = key.role === 'signing' && key.state === 'next' && !key.certificate?.issuerId
    if (isOrphan && key.source === 'generated') return true // the next root has been withdrawn
    if (key.state !== 'retired' || !key.certificate) return false
    // a gateway that has not received the change presents the former server key
    const end = (key.role !== 'server' && neededUntil(key, keys, now)) || (key.retiredAt ?? now)
    return end.getTime() + KEY_EXTRA_MS < now.getTime()
  })
  return over && { step: 'remove', id: over.id }
}

function missingKey(keys: readonly PlannedKey[]): Step | undefined {
  for (const role of ['root', 'signing', 'server'] as const) {
    if (keyOf(keys, role, 'active')) continue
    const next = keyOf(keys, role, 'next')
    return next ? { step: 'activate', id: next.id } : { step: 'add', role, state: 'active' }
  }
  return undefined
}

/** A next root has a next signing authority below it, and both are activated together. */
function dueAuthorityStep(keys: readonly PlannedKey[], now: Date): Step | undefined {
  const root = keyOf(keys, 'root', 'active')
  const signing = keyOf(keys, 'signing', 'active')
  if (!root?.certificate || !signing?.certificate) return undefined
  const nextRoot = keyOf(keys, 'root', 'next')
  const nextSigning = keyOf(keys, 'signing', 'next')
  const isBelowNext = nextRoot !== undefined && nextSigning?.certificate?.issuerId === nextRoot.id

  if (nextRoot?.certificate?.canSign) {
    if (!nextSigning) return { step: 'add', role: 'signing', state: 'next' }
    if (!isBelowNext && nextSigning.source === 'generated') return { step: 'remove', id: nextSigning.id }
  }
  if (signing.source === 'provided') return undefined
  const isRootDue = isPast(renewalOf(root, undefined), now)
  const isSigningDue = isPast(renewalOf(signing, undefined), now) || signing.certificate.issuerId !== root.id
  if (isRootDue && !nextRoot) return { step: 'add', role: 'root', state: 'next' }
  if (isSigningDue && !nextSigning && isIssuer(root, now))
    return { step: 'add', role: 'signing', state: 'next' }
  const isDue = isBelowNext ? isRootDue || isSigningDue : isSigningDue
  const due = isBelowNext ? nextRoot : nextSigning
  if (!isDue || due?.source !== 'generated' || nextSigning?.source !== 'generated') return undefined
  return [due, nextSigning].every((key) => isPublished(key, AUTHORITY_PUBLISHED_MS, now))
    ? { step: 'activate', id: due.id }
    : undefined
}

function dueServerStep(keys: readonly PlannedKey[], hosts: readonly string[], now: Date): Step | undefined {
  const signing = keyOf(keys, 'signing', 'active')
  if (!signing || !isIssuer(signing, now)) return undefined
  const outdated = keys.find(({ role, state, source, certificate }) => {
    if (role !== 'server' || state === 'retired' || source === 'provided' || !certificate) return false
    const lacksName = hosts.some((host) => !certificate.hosts.includes(host))
    return lacksName || certificate.issuerId !== signing.id || isPast(twoThirdsOf(certificate), now)
  })
  return outdated && { step: 'renew', id: outdated.id }
}

const isPast = (time: Date | undefined, now: Date): boolean => time !== undefined && time <= now

const isIssuer = ({ certificate }: PlannedKey, now: Date): boolean =>
  certificate?.canSign === true && certificate.notAfter.getTime() - now.getTime() > ISSUER_MS

const twoThirdsOf = ({ notBefore, notAfter }: PlannedCertificate): Date =>
  new Date(notBefore.getTime() + (2 / 3) * (notAfter.getTime() - notBefore.getTime()))
