import { createPublicKey, type KeyObject } from 'node:crypto'
import { pemOf } from '@overlay/x509'
import { chainToRoot, subjectOf } from './chain.js'
import {
  checkAuthorities,
  checkServer,
  checkServerKey,
  checkSigner,
  checkTokenKey,
  isP256,
} from './checks.js'
import { type KeySource, readKeyFiles } from './files.js'
import { decodeMaterial, type Material } from './material.js'
import { ProvidedKeyError } from './provided-key-error.js'

/** A key that an operator brings, checked. */
export interface CheckedKey {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  /** PEM. Keys of tokens have none. */
  readonly certificate: string | undefined
  /** PEM of the authorities above, up to the root. */
  readonly chain: readonly string[]
  /** Lines about what works and should change. */
  readonly warnings: readonly string[]
}

export interface CheckOptions {
  /** Hosts that the certificate of the servers must name. */
  readonly hosts: readonly string[]
  readonly now: Date
}

export const providableRoles = ['signing', 'server', 'token'] as const
export type ProvidableRole = (typeof providableRoles)[number]

/** Reads and checks a key. Throws ProvidedKeyError, whose message is one line without anything secret. */
export async function readProvidedKey(
  role: ProvidableRole,
  source: KeySource,
  options: CheckOptions,
): Promise<CheckedKey> {
  const files = await readKeyFiles(source)
  const material = decodeMaterial(files)
  const { certificate, chain, warnings } = check[role](material, options)
  return {
    privateKey: material.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate,
    chain,
    warnings: [...files.warnings, ...warnings],
  }
}

type Checked = Omit<CheckedKey, 'privateKey'>

const check: Readonly<Record<ProvidableRole, (material: Material, options: CheckOptions) => Checked>> = {
  signing(material, { now }) {
    const chain = chainOf(material, now)
    const [certificate] = chain
    checkAuthorities(chain, material.certificatesWhere, now)
    checkSigner({ certificate, where: material.certificatesWhere })
    return { ...pemsOf(chain), warnings: [] }
  },

  server(material, { hosts, now }) {
    checkServerKey(material.privateKey, material.where)
    const [certificate] = matching(material)
    const where = material.certificatesWhere
    checkServer({ certificate, where }, hosts, now)
    const chain = chainOf(material, now)
    checkAuthorities(chain.slice(1), where, now)
    return {
      ...pemsOf(chain),
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
}

type Chain = readonly [Material['certificates'][number], ...Material['certificates']]

function chainOf(material: Material, now: Date): Chain {
  const [certificate, others] = matching(material)
  const [, ...above] = chainToRoot(certificate, others, { where: material.certificatesWhere, now })
  return [certificate, ...above]
}

/** The certificate of the key, and all others. */
function matching({ privateKey, certificates, authorities, where, certificatesWhere }: Material) {
  const publicKey = createPublicKey(privateKey)
  const certificate = certificates.find((one) => isOf(one.publicKey, publicKey))
  if (certificate)
    return [certificate, [...certificates, ...authorities].filter((one) => one !== certificate)] as const
  const [first] = certificates
  throw first
    ? new ProvidedKeyError(
        where,
        `the key does not fit the certificate of ${subjectOf(first)}${where === certificatesWhere ? '' : ` in ${certificatesWhere}`}`,
        'bring a key and a certificate that were made together',
      )
    : new ProvidedKeyError(
        certificatesWhere,
        'no certificate in it',
        where === certificatesWhere
          ? 'add the certificate of the key'
          : 'write the certificate of the key into it',
      )
}

const isOf = (a: KeyObject, b: KeyObject): boolean => a.equals(b)

const pemsOf = ([certificate, ...above]: Chain) => ({
  certificate: pemOf(certificate.raw),
  chain: above.map(({ raw }) => pemOf(raw)),
})
