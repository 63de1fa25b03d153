import { createPublicKey, type KeyObject } from 'node:crypto'
import { algorithmIn } from './certificate.js'
import { contentOf, type Element, objectIdIn, onlyElement, partsOf, tag } from './der.js'
import { LONGEST_KEY } from './limits.js'
import { rsaWeakness } from './rsa.js'

/** Why a public key is refused. The message is for the sender. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
}

const EC = '1.2.840.10045.2.1'

/** P-256, P-384, P-521. */
const curves = ['1.2.840.10045.3.1.7', '1.3.132.0.34', '1.3.132.0.35']

/**
 * The public key in a SubjectPublicKeyInfo. Throws KeyError where its kind is not used in the network or it has a known
 * weakness. Takes a few milliseconds at most, for the longest RSA key.
 */
export function soundKey(publicKey: Buffer, longestKey = LONGEST_KEY): KeyObject {
  const { isEc, curve, bits } = readKey(publicKey)
  if (isEc) refuseUnusualCurve(curve, bits)
  const key = importKey(publicKey)
  switch (key.asymmetricKeyType) {
    case 'ec':
    case 'ed25519':
      return key
    case 'rsa': {
      const weakness = rsaWeakness(...rsaNumbers(bits), longestKey)
      if (weakness) throw new KeyError(`RSA key ${weakness}`)
      return key
    }
    default:
      throw new KeyError(
        `public key must be RSA of 2048 to ${longestKey} bits, P-256, P-384, P-521 or Ed25519`,
      )
  }
}

/**
 * Whether two public keys are the same. `KeyObject.equals` leaves an error in OpenSSL's queue if their kinds differ, and
 * the next key that Node decodes fails with it.
 */
export const isSameKey = (a: KeyObject, b: KeyObject): boolean => spkiOf(a).equals(spkiOf(b))

const spkiOf = (key: KeyObject): Buffer => key.export({ type: 'spki', format: 'der' })

/**
 * Modulus and exponent. The export of a modulus of more than 16384 bits as JWK would leave an error in OpenSSL's queue,
 * too.
 */
function rsaNumbers(bits: Buffer): [bigint, bigint] {
  try {
    const [modulus, exponent] = partsOf(onlyElement(bits.subarray(1)))
    return [numberOf(modulus), numberOf(exponent)]
  } catch (cause) {
    throw new KeyError('could not read the public key', { cause })
  }
}

const numberOf = (element: Element | undefined): bigint =>
  BigInt(`0x${contentOf(element, tag.integer).toString('hex') || '0'}`)

/** Refuses explicit curve parameters and compressed points, which other TLS libraries do not read. */
function refuseUnusualCurve(curve: string | undefined, bits: Buffer): void {
  if (curve === undefined || !curves.includes(curve) || bits[1] !== 0x04)
    throw new KeyError('EC key must be an uncompressed point on P-256, P-384 or P-521')
}

interface Key {
  readonly isEc: boolean
  readonly curve: string | undefined // absent: not named
  readonly bits: Buffer
}

function readKey(publicKey: Buffer): Key {
  try {
    const [algorithm, bits] = partsOf(onlyElement(publicKey))
    const { id, parameters } = algorithmIn(algorithm)
    const isEc = id === EC
    const curve = isEc && parameters?.tag === tag.objectId ? objectIdIn(parameters) : undefined
    return { isEc, curve, bits: contentOf(bits, tag.bitString) }
  } catch (cause) {
    throw new KeyError('could not read the public key', { cause })
  }
}

function importKey(key: Buffer): KeyObject {
  try {
    return createPublicKey({ key, format: 'der', type: 'spki' })
  } catch (cause) {
    throw new KeyError('could not read the public key', { cause })
  }
}
