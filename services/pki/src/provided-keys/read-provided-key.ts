import { createPublicKey, type X509Certificate } from 'node:crypto'
import { hasIssued, isSameKey, pemOf } from '@overlay/x509'
import { buildChain } from '../domain/build-chain.js'
import { onOneLine } from '../domain/describe-key.js'
import type { KeyRole } from '../domain/planned-key.js'
import type { ProvidedKey } from '../keys/operations.js'
import {
  checkAuthorities,
  checkServer,
  checkServerKey,
  checkSessionKey,
  checkSigner,
  checkTokenKey,
  hasSigned,
  isP256,
  isSelfSigned,
  subjectOf,
} from './check-certificates.js'
import { decodeMaterial, type Material } from './decode-material.js'
import { type KeyFiles, type KeySource, ProvidedKeyError, readKeyFiles } from './read-key-files.js'

/** A key that an operator provides, checked. */
export interface CheckedKey extends ProvidedKey {
  /** Lines about what works and should change. */
  readonly warnings: readonly string[]
}

export interface CheckOptions {
  /** Hosts that the certificate of the servers must name. */
  readonly hosts: readonly string[]
  readonly now: Date
}

/** Reads and checks a key. Throws ProvidedKeyError, whose message is one line without anything secret. */
export const readProvidedKey = async (
  role: KeyRole,
  source: KeySource,
  options: CheckOptions,
): Promise<CheckedKey> => checkProvidedKey(role, await readKeyFiles(source), options)

/** The same for files that have been read. */
export function checkProvidedKey(role: KeyRole, files: KeyFiles, options: CheckOptions): CheckedKey {
  const material = decodeMaterial(files)
  const { certificate, chain, warnings } = checks[role](material, options)
  return {
    privateKey: material.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate,
    chain,
    warnings: [...files.warnings, ...warnings],
  }
}

type Checked = Omit<CheckedKey, 'privateKey'>

const checks: Readonly<Record<KeyRole, (material: Material, options: CheckOptions) => Checked>> = {
  root(material, { now }) {
    const [certificate] = matching(material)
    const where = material.certificatesWhere
    if (!isSelfSigned(certificate))
      throw new ProvidedKeyError(
        where,
        `the certificate of ${subjectOf(certificate)} is not a root`,
        'provide the key of the authority that has signed its own certificate',
      )
    return authorityOf([certificate], where, now)
  },

  signing(material, { now }) {
    const chain = chainOf(material, now)
    const where = material.certificatesWhere
    if (chain.length === 1)
      throw new ProvidedKeyError(
        where,
        `the certificate of ${subjectOf(chain[0])} is a root`,
        'provide an authority that the root has certified, with the root in ca.crt',
      )
    return authorityOf(chain, where, now)
  },

  server(material, { hosts, now }) {
    checkServerKey(material.privateKey, material.where)
    const [certificate] = matching(material)
    const where = material.certificatesWhere
    checkServer({ certificate, where }, hosts, now)
    const chain = chainOf(material, now)
    checkAuthorities(chain.slice(1), where, now)
    return {
      ...pemsOf(chain, where),
      warnings: isP256(material.privateKey)
        ? [
            `${material.where}: clients with C SDKs before 0.32 cannot verify enrollment tokens that a P-256 key signs: use RSA if you have such clients`,
          ]
        : [],
    }
  },

  token({ privateKey, where }) {
    checkTokenKey(privateKey, where)
    return { certificate: undefined, chain: [], warnings: [] }
  },

  session({ privateKey, where }) {
    checkSessionKey(privateKey, where)
    return { certificate: undefined, chain: [], warnings: [] }
  },
}

function authorityOf(chain: Chain, where: string, now: Date): Checked {
  checkAuthorities(chain, where, now)
  checkSigner({ certificate: chain[0], where })
  return { ...pemsOf(chain, where), warnings: [] }
}

type Chain = readonly [Material['certificates'][number], ...Material['certificates']]

/** From the certificate of the key to the root that signed itself. */
function chainOf(material: Material, now: Date): Chain {
  const [certificate, others] = matching(material)
  const isCurrent = ({ validFrom, validTo }: X509Certificate): boolean =>
    new Date(validFrom) <= now && now < new Date(validTo)
  const authorities = [...others.filter(isCurrent), ...others.filter((one) => !isCurrent(one))]
  const rules = { isComplete: isSelfSigned, hasIssued: hasSigned }
  const { chain, last, isComplete } = buildChain(certificate, authorities, rules)
  if (!isComplete)
    throw new ProvidedKeyError(
      material.certificatesWhere,
      `the chain ends at ${subjectOf(last)} and does not reach a root`,
      `add the certificate of '${onOneLine(last.issuer)}', and those above it up to the root`,
    )
  return [certificate, ...chain.slice(1)]
}

/** The certificate of the key, and all others. */
function matching({ privateKey, certificates, authorities, where, certificatesWhere }: Material) {
  const publicKey = createPublicKey(privateKey)
  const certificate = certificates.find((one) => isSameKey(one.publicKey, publicKey))
  if (certificate)
    return [certificate, [...certificates, ...authorities].filter((one) => one !== certificate)] as const
  const [first] = certificates
  throw first
    ? new ProvidedKeyError(
        where,
        `the key does not fit the certificate of ${subjectOf(first)}${where === certificatesWhere ? '' : ` in ${certificatesWhere}`}`,
        'provide the certificate that was issued for this key',
      )
    : new ProvidedKeyError(
        certificatesWhere,
        'no certificate in it',
        where === certificatesWhere
          ? 'add the certificate of the key'
          : 'write the certificate of the key into it',
      )
}

function pemsOf(chain: Chain, where: string) {
  const misnamed = chain.find((one, at) => !hasIssued(chain[at + 1] ?? one, one))
  if (misnamed)
    throw new ProvidedKeyError(
      where,
      `the certificate of ${subjectOf(misnamed)} names another key of its issuer`,
      'issue it again',
    )
  const [certificate, ...above] = chain
  return { certificate: pemOf(certificate.raw), chain: above.map(({ raw }) => pemOf(raw)) }
}
