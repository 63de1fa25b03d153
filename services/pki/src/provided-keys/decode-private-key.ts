import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { KeyError, LONGEST_AUTHORITY_KEY, soundKey } from '@overlay/x509'
import forge from 'node-forge'
import { PEM_ITERATIONS } from '../limits.js'
import { iterationsIn } from './count-iterations.js'
import { ProvidedKeyError } from './read-key-files.js'

/** Where a key is from, for messages, and how to decrypt it. */
export interface Decryption {
  readonly where: string
  readonly passphrase: string | undefined
  /** How to give a passphrase. */
  readonly passphraseRemedy: string
}

const convertRemedy = 'convert it with openssl pkcs8 -topk8 -v2 aes-256-cbc'

/**
 * The private key in a PEM block: PKCS#8, PKCS#1 or SEC1, encrypted or not. OpenSSL decrypts it: forge reads no EC keys,
 * and takes twenty times as long to derive a key.
 */
export function privateKeyIn(pem: string, label: string, decryption: Decryption): KeyObject {
  const { where, passphrase, passphraseRemedy } = decryption
  const isPkcs8Encrypted = label === 'ENCRYPTED PRIVATE KEY'
  const isEncrypted = isPkcs8Encrypted || /^Proc-Type: *4, *ENCRYPTED/m.test(pem)
  if (isEncrypted && !passphrase)
    throw new ProvidedKeyError(where, 'the key is encrypted and there is no passphrase', passphraseRemedy)
  if (isPkcs8Encrypted) checkIterations(pem, where)
  try {
    return soundPrivateKey(
      createPrivateKey(isEncrypted ? { key: pem, passphrase: passphrase ?? '' } : pem),
      where,
    )
  } catch (err) {
    throw err instanceof ProvidedKeyError ? err : undecodable(err, isEncrypted, where)
  }
}

/** Refuses keys of other kinds and weak ones. */
export function soundPrivateKey(key: KeyObject, where: string): KeyObject {
  try {
    soundKey(createPublicKey(key).export({ type: 'spki', format: 'der' }), LONGEST_AUTHORITY_KEY)
    return key
  } catch (err) {
    if (!(err instanceof KeyError)) throw err
    throw new ProvidedKeyError(
      where,
      `the key is not accepted (${err.message})`,
      'use RSA of at least 2048 bits, P-256, P-384, P-521 or Ed25519',
    )
  }
}

function undecodable(err: unknown, isEncrypted: boolean, where: string): ProvidedKeyError {
  const { message } = err as Error
  if (isEncrypted && message.includes('unsupported'))
    return new ProvidedKeyError(where, 'the key is encrypted with an outdated method', convertRemedy)
  return isEncrypted
    ? new ProvidedKeyError(where, 'the passphrase of the key is wrong', 'check the file of the passphrase')
    : new ProvidedKeyError(where, 'the key cannot be decoded', 'copy the file again, or convert it to PKCS#8')
}

function checkIterations(pem: string, where: string): void {
  const body = pem.replace(/-----[^-]*-----/g, '')
  let iterations: number
  try {
    iterations = iterationsIn(forge.asn1.fromDer(Buffer.from(body, 'base64').toString('latin1')))
  } catch {
    throw new ProvidedKeyError(where, 'the key is damaged', 'copy the file again')
  }
  if (iterations > PEM_ITERATIONS)
    throw new ProvidedKeyError(
      where,
      `decrypting the key takes more than ${PEM_ITERATIONS} iterations`,
      convertRemedy,
    )
}
