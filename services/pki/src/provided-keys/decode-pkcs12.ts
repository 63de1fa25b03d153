import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import forge from 'node-forge'
import { PKCS12_ITERATIONS } from '../limits.js'
import { iterationsIn } from './count-iterations.js'
import { type Decryption, soundPrivateKey } from './decode-private-key.js'
import { ProvidedKeyError } from './read-key-files.js'

const exportRemedy = 'export it again with openssl pkcs12 -export'

export interface KeyContents {
  readonly privateKeys: readonly KeyObject[]
  readonly certificates: readonly X509Certificate[]
}

/** The keys and certificates of a PKCS#12 file. */
export function pkcs12Contents(bytes: Buffer, decryption: Decryption): KeyContents {
  const { where } = decryption
  const bags = readBags(bytes, decryption)
  const ofType = (...types: readonly (string | undefined)[]) =>
    bags.filter(({ type }) => types.includes(type))
  const { certBag, keyBag, pkcs8ShroudedKeyBag } = forge.pki.oids
  try {
    return {
      privateKeys: ofType(keyBag, pkcs8ShroudedKeyBag).map((bag) => soundPrivateKey(keyOf(bag), where)),
      certificates: ofType(certBag).map((bag) => new X509Certificate(certificateOf(bag))),
    }
  } catch (err) {
    if (err instanceof ProvidedKeyError) throw err
    throw new ProvidedKeyError(where, 'it has a key or certificate that cannot be decoded', exportRemedy)
  }
}

function readBags(bytes: Buffer, { where, passphrase, passphraseRemedy }: Decryption) {
  let file: forge.asn1.Asn1
  try {
    file = forge.asn1.fromDer(bytes.toString('latin1'), false)
  } catch {
    throw new ProvidedKeyError(where, 'neither PEM nor PKCS#12', 'provide the key in one of these forms')
  }
  if (iterationsIn(file) > PKCS12_ITERATIONS)
    throw new ProvidedKeyError(
      where,
      `decrypting it takes more than ${PKCS12_ITERATIONS} iterations`,
      `${exportRemedy} -iter ${PKCS12_ITERATIONS}`,
    )
  try {
    return forge.pkcs12
      .pkcs12FromAsn1(file, false, passphrase ?? '')
      .safeContents.flatMap(({ safeBags }) => safeBags)
  } catch (err) {
    throw unreadable(err, { where, passphrase, passphraseRemedy })
  }
}

function unreadable(err: unknown, { where, passphrase, passphraseRemedy }: Decryption): ProvidedKeyError {
  const { message } = err as Error
  if (/unsupported|Only PKCS#12 PFX in password/i.test(message))
    return new ProvidedKeyError(where, 'it is protected by a method that is not supported', exportRemedy)
  if (!/password|decrypt/i.test(message))
    return new ProvidedKeyError(where, 'neither PEM nor PKCS#12', 'provide the key in one of these forms')
  return passphrase
    ? new ProvidedKeyError(where, 'its passphrase is wrong', 'check the file of the passphrase')
    : new ProvidedKeyError(where, 'it is encrypted and there is no passphrase', passphraseRemedy)
}

// forge decodes RSA only. Of other keys, it returns the decrypted structure.
const keyOf = ({ key, asn1 }: forge.pkcs12.Bag): KeyObject =>
  key
    ? createPrivateKey({ key: derOf(forge.pki.privateKeyToAsn1(key)), format: 'der', type: 'pkcs1' })
    : createPrivateKey({ key: derOf(asn1), format: 'der', type: 'pkcs8' })

const certificateOf = ({ cert, asn1 }: forge.pkcs12.Bag): Buffer =>
  derOf(cert ? forge.pki.certificateToAsn1(cert) : asn1)

const derOf = (element: forge.asn1.Asn1): Buffer =>
  Buffer.from(forge.asn1.toDer(element).getBytes(), 'latin1')
