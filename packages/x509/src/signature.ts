import type { Algorithm } from './certificate.js'
import { objectIdIn, partsOf } from './der.js'

/** How to verify a signature. */
export interface SignatureScheme {
  /** The name in node:crypto. null: the algorithm implies it. */
  readonly digest: string | null
  readonly isPss: boolean
}

/** PKCS#1 v1.5, ECDSA. */
const digests: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
}
const pssDigests: Readonly<Record<string, string>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
}
const RSA_PSS = '1.2.840.113549.1.1.10'
const ED25519 = '1.3.101.112'

/**
 * The scheme of RSA and ECDSA with SHA-2, and of Ed25519. Undefined for other algorithms: signatures with MD5 and SHA-1
 * can be forged.
 */
export function signatureSchemeOf({ id, parameters }: Algorithm): SignatureScheme | undefined {
  const isPss = id === RSA_PSS
  const digest = isPss ? pssDigestOf(parameters) : id === ED25519 ? null : digests[id]
  return digest === undefined ? undefined : { digest, isPss }
}

/** The default hash is SHA-1. */
function pssDigestOf(parameters: Algorithm['parameters']): string | undefined {
  const hash = parameters && partsOf(parameters).find((part) => part.tag === 0xa0)
  const [algorithm] = hash ? partsOf(hash, 0xa0) : []
  return algorithm && pssDigests[objectIdIn(partsOf(algorithm)[0])]
}
