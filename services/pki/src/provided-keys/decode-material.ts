import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { isSameKey, pemBlocksIn } from '@overlay/x509'
import { type KeyContents, pkcs12Contents } from './decode-pkcs12.js'
import { type Decryption, privateKeyIn } from './decode-private-key.js'
import type { KeyFile, KeyFiles } from './read-key-files.js'
import { ProvidedKeyError } from './read-key-files.js'

/** The decoded files of a key. */
export interface Material {
  readonly privateKey: KeyObject
  /** The file of the key, for messages. */
  readonly where: string
  /** The certificates that came with the key. */
  readonly certificates: readonly X509Certificate[]
  readonly certificatesWhere: string
  /** All other certificates. */
  readonly authorities: readonly X509Certificate[]
}

/** Decodes the files. Throws ProvidedKeyError. */
export function decodeMaterial(files: KeyFiles): Material {
  const { key, certificates, certificatesWhere, authorities, passphrase, passphraseRemedy } = files
  const decryption = { where: key.where, passphrase, passphraseRemedy }
  const own = contentsOf(key, decryption)
  const privateKey = onlyKey(own.privateKeys, key.where)
  return {
    privateKey,
    where: key.where,
    certificates: certificates ? certificatesIn(certificates) : own.certificates,
    certificatesWhere,
    authorities: authorities ? certificatesIn(authorities) : [],
  }
}

function contentsOf(file: KeyFile, decryption: Decryption): KeyContents {
  const text = file.bytes.toString('latin1')
  if (!text.includes('-----BEGIN ')) {
    if (text.trim() === '') throw new ProvidedKeyError(file.where, 'empty', 'write the key into it')
    return pkcs12Contents(file.bytes, decryption)
  }
  const blocks = [...pemBlocksIn(text)]
  return {
    privateKeys: blocks
      .filter(({ label }) => keyLabels.includes(label))
      .map((block) => privateKeyIn(block.text, block.label, decryption)),
    certificates: certificatesIn(file),
  }
}

const keyLabels = ['PRIVATE KEY', 'ENCRYPTED PRIVATE KEY', 'RSA PRIVATE KEY', 'EC PRIVATE KEY']

function certificatesIn({ where, bytes }: KeyFile): readonly X509Certificate[] {
  return [...pemBlocksIn(bytes.toString('latin1'))]
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ text }, at) => {
      try {
        return new X509Certificate(text)
      } catch {
        throw new ProvidedKeyError(
          where,
          `certificate ${at + 1} cannot be decoded`,
          'copy the file again: each certificate has a line BEGIN and a line END',
        )
      }
    })
}

function onlyKey(keys: readonly KeyObject[], where: string): KeyObject {
  const [first, ...more] = keys
  if (!first)
    throw new ProvidedKeyError(
      where,
      'no private key in it',
      'provide the key in PEM (PKCS#8, PKCS#1 or SEC1) or PKCS#12',
    )
  const publicKey = createPublicKey(first)
  if (more.some((other) => !isSameKey(createPublicKey(other), publicKey)))
    throw new ProvidedKeyError(where, `it has ${keys.length} private keys`, 'leave only one in it')
  return first
}
