import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isSameKey, isTokenText, soundKey } from '@overlay/x509'
import { PUBLISHED_KEYS } from '../limits.js'
import { algorithmsOf, isSameAlgorithm } from './external-token.js'

/** A public key as it is stored. */
export interface StoredKey {
  /** DER of its SubjectPublicKeyInfo, base64. */
  readonly spki: string
  /** The only algorithm that it verifies, if its issuer says so. */
  readonly alg?: string
}

/** The keys of one name. */
export interface PublishedKey extends StoredKey {
  /** Further ones, for other algorithms. */
  readonly others?: readonly StoredKey[]
}

/** Keys by `kid`. */
export type KeySet = Readonly<Record<string, PublishedKey>>

/** A key that cannot verify signatures here. */
export interface UnusableKey {
  readonly kid: string
  readonly reason: string
}

/** A document that is no set of keys. The message is for operators. */
export class KeySetError extends Error {
  override readonly name = 'KeySetError'
}

type Entry = Readonly<Record<string, unknown>>

/**
 * Reads a JSON Web Key Set. Leaves out keys that cannot verify signatures here: those for other purposes, without `kid`,
 * of other types, weak, or whose certificate has another key. Throws KeySetError if the document is not a set.
 */
export function keysIn(json: string): { readonly keys: KeySet; readonly unusable: readonly UnusableKey[] } {
  const unusable: UnusableKey[] = []
  const found = new Map<string, Candidate[]>()
  for (const entry of listIn(json)) {
    const { kid } = entry
    try {
      if (!isTokenText(kid)) throw new KeySetError('kid is not a text')
      found.set(kid, [...(found.get(kid) ?? []), candidateIn(entry)])
    } catch (err) {
      unusable.push({ kid: typeof kid === 'string' ? kid : '', reason: messageOf(err) })
    }
  }
  const keys = [...found].flatMap(([kid, candidates]): [string, PublishedKey][] => {
    const clear = candidates.filter((one) => !candidates.some((other) => isAmbiguous(one, other)))
    if (clear.length < candidates.length)
      unusable.push({ kid, reason: 'several keys have this kid for one algorithm' })
    const [first, ...others] = withoutRepetitions(clear.map(({ stored }) => stored))
    return first ? [[kid, { ...first, ...(others.length > 0 && { others }) }]] : []
  })
  return { keys: Object.fromEntries(keys), unusable }
}

/** Several entries may have one name if they are for different algorithms (RFC 7517, 4.5). */
export const keysOf = ({ others = [], ...first }: PublishedKey): readonly StoredKey[] => [first, ...others]

interface Candidate {
  readonly stored: StoredKey
  readonly algorithms: readonly string[]
}

/** Two keys of one name and algorithm, of which either may be meant. */
const isAmbiguous = (one: Candidate, other: Candidate): boolean =>
  one.stored.spki !== other.stored.spki &&
  one.algorithms.some((alg) => other.algorithms.some((of) => isSameAlgorithm(alg, of)))

const withoutRepetitions = (keys: readonly StoredKey[]): StoredKey[] =>
  keys.filter((key, at) => keys.findIndex(({ spki, alg }) => spki === key.spki && alg === key.alg) === at)

function listIn(json: string): readonly Entry[] {
  let keys: unknown
  try {
    keys = (JSON.parse(json) as { readonly keys?: unknown } | null)?.keys
  } catch (cause) {
    throw new KeySetError('the document is not JSON', { cause })
  }
  if (!Array.isArray(keys)) throw new KeySetError('the document has no list of keys')
  if (keys.length > PUBLISHED_KEYS) throw new KeySetError(`the document has more than ${PUBLISHED_KEYS} keys`)
  return keys.filter((key) => typeof key === 'object' && key !== null).map(withoutEmptyMembers)
}

/** Some providers write members that they do not use as null, an empty text or an empty list. */
const withoutEmptyMembers = (entry: Entry): Entry =>
  Object.fromEntries(
    Object.entries(entry).filter(
      ([, value]) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0),
    ),
  )

function candidateIn(entry: Entry): Candidate {
  const { alg, use = 'sig', key_ops: operations = ['verify'] } = entry
  if (use !== 'sig') throw new KeySetError('use is not sig')
  if (!Array.isArray(operations) || !operations.includes('verify'))
    throw new KeySetError('key_ops does not contain verify')
  if (alg !== undefined && typeof alg !== 'string') throw new KeySetError('alg is not a text')
  const key = keyIn(entry)
  const ofType = algorithmsOf(key)
  if (alg !== undefined && !ofType.some((one) => isSameAlgorithm(one, alg)))
    throw new KeySetError('alg does not fit the key, or is not supported')
  const spki = key.export({ format: 'der', type: 'spki' }).toString('base64')
  return {
    stored: { spki, ...(alg !== undefined && { alg }) },
    algorithms: alg === undefined ? ofType : [alg],
  }
}

function keyIn(entry: Entry): KeyObject {
  const { x5c } = entry
  const certified = Array.isArray(x5c) ? certifiedKey(x5c[0]) : undefined
  const isPlain = ['n', 'x'].some((name) => Object.hasOwn(entry, name))
  const plain = isPlain ? plainKey(entry) : undefined
  if (certified && plain && !isSameKey(certified, plain))
    throw new KeySetError('its certificate has another key')
  const key = plain ?? certified
  if (!key) throw new KeySetError('it has no public key')
  return key
}

/** differs: both the standard encoding and that of URLs are read. */
function certifiedKey(der: unknown): KeyObject {
  if (typeof der !== 'string') throw new KeySetError('x5c is not a list of texts')
  return sound(new X509Certificate(Buffer.from(der, 'base64')).publicKey) // reads base64url, too
}

/** Only the members of public keys: with `d`, a private key would be read. */
function plainKey({ kty, n, e, crv, x, y }: Entry): KeyObject {
  const members = Object.entries({ kty, n, e, crv, x, y }).filter(([, value]) => typeof value === 'string')
  return sound(createPublicKey({ key: Object.fromEntries(members) as JsonWebKey, format: 'jwk' }))
}

const sound = (key: KeyObject): KeyObject => soundKey(key.export({ format: 'der', type: 'spki' }))

const messageOf = (err: unknown): string => (err instanceof Error ? err.message : 'it cannot be read')
