import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isSameKey, isTokenText, soundKey } from '@overlay/x509'

/** A public key as it is stored. */
export interface PublishedKey {
  /** DER of its SubjectPublicKeyInfo, base64. */
  readonly spki: string
  /** The only algorithm that it verifies, if its issuer says so. */
  readonly alg?: string
}

/** Keys by `kid`. */
export type KeySet = Readonly<Record<string, PublishedKey>>

/** A document that is no set of keys. The message is for operators. */
export class KeySetError extends Error {
  override readonly name = 'KeySetError'
}

const MOST_KEYS = 100

/**
 * Reads a JSON Web Key Set. Leaves out keys that cannot verify signatures here: those for other purposes, without `kid`,
 * of other types, weak, or whose certificate has another key. Throws KeySetError if the document is not a set.
 */
export function keysIn(json: string): KeySet {
  const entries = listIn(json)
  const found = new Map<string, PublishedKey | undefined>()
  for (const entry of entries) {
    const { kid, alg, use = 'sig', key_ops: operations = ['verify'] } = entry
    if (!isTokenText(kid) || use !== 'sig' || !Array.isArray(operations) || !operations.includes('verify'))
      continue
    const spki = keyIn(entry)?.export({ format: 'der', type: 'spki' }).toString('base64')
    if (spki === undefined) continue
    const before = found.get(kid)
    // two keys of one name: it is not known which is meant
    const isAmbiguous = found.has(kid) && before?.spki !== spki
    found.set(kid, isAmbiguous ? undefined : { spki, ...(typeof alg === 'string' && { alg }) })
  }
  return Object.fromEntries([...found].flatMap(([kid, key]) => (key ? [[kid, key]] : [])))
}

function listIn(json: string): readonly Readonly<Record<string, unknown>>[] {
  let keys: unknown
  try {
    keys = (JSON.parse(json) as { readonly keys?: unknown } | null)?.keys
  } catch (cause) {
    throw new KeySetError('the document is not JSON', { cause })
  }
  if (!Array.isArray(keys)) throw new KeySetError('the document has no list of keys')
  if (keys.length > MOST_KEYS) throw new KeySetError(`the document has more than ${MOST_KEYS} keys`)
  return keys.filter((key) => typeof key === 'object' && key !== null)
}

function keyIn(entry: Readonly<Record<string, unknown>>): KeyObject | undefined {
  const { kty, x5c, alg: _alg, use: _use, key_ops: _operations, kid: _kid, ...parameters } = entry
  try {
    const certified = Array.isArray(x5c) ? certifiedKey(x5c[0]) : undefined
    const isPlain = ['n', 'x'].some((name) => Object.hasOwn(parameters, name))
    const plain = isPlain ? plainKey({ ...parameters, kty }) : undefined
    if (certified && plain && !isSameKey(certified, plain)) return undefined
    return plain ?? certified
  } catch {
    return undefined // one bad key does not spoil the others
  }
}

/** differs: both the standard encoding and that of URLs are read. */
function certifiedKey(der: unknown): KeyObject {
  if (typeof der !== 'string') throw new KeySetError('x5c is not a list of texts')
  return sound(new X509Certificate(Buffer.from(der, 'base64')).publicKey) // reads base64url, too
}

/** Only the members of public keys: with `d`, a private key would be read. */
function plainKey({ kty, n, e, crv, x, y }: Readonly<Record<string, unknown>>): KeyObject {
  const members = Object.entries({ kty, n, e, crv, x, y }).filter(([, value]) => typeof value === 'string')
  return sound(createPublicKey({ key: Object.fromEntries(members) as JsonWebKey, format: 'jwk' }))
}

const sound = (key: KeyObject): KeyObject => soundKey(key.export({ format: 'der', type: 'spki' }))
