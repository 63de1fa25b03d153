import type { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { certificatesIn, refuseOtherKey, snapshotOf } from './pem-files.js'

/** The certificate of a process, its key, and the authorities whose certificates it accepts. */
export interface TlsMaterial {
  /** PEM: the certificate, then those of intermediate authorities. */
  readonly certificates: string
  /** PEM, without a passphrase. */
  readonly key: string
  /** PEM of one or several certificates. */
  readonly authorities: string
  readonly leaf: X509Certificate
}

const files = { certificates: 'tls.crt', key: 'tls.key', authorities: 'ca.crt' } as const

/**
 * Reads `tls.crt`, `tls.key` and `ca.crt`, as cert-manager writes them, and checks that they fit together now. The error
 * of an unusable set names the file, what is wrong with it, and what to do.
 */
export async function readTlsMaterial(directory: string, now = new Date()): Promise<TlsMaterial> {
  const path = (name: keyof typeof files): string => join(directory, files[name])
  const snapshot = await snapshotOf(directory)
  const read = async (name: keyof typeof files): Promise<string> => {
    try {
      return await readFile(join(snapshot, files[name]), 'utf8')
    } catch (err) {
      throw new Error(
        `cannot read ${path(name)}: ${(err as NodeJS.ErrnoException).code}: the directory must contain tls.crt, tls.key and ca.crt, readable for this process`,
      )
    }
  }
  const [certificates, key, authorities] = [
    await read('certificates'),
    await read('key'),
    await read('authorities'),
  ]
  const [leaf, ...intermediates] = certificatesIn(certificates, path('certificates'))
  const anchors = certificatesIn(authorities, path('authorities'))
  refuseOtherKey({ leaf, path: path('certificates') }, { text: key, path: path('key') })
  refuseDates(leaf, now, path('certificates'))
  refusePurposes(leaf, path('certificates'))
  if (!hasChain(leaf, intermediates, anchors, now))
    throw new Error(
      `${path('certificates')} was not issued by a valid authority in ${path('authorities')}: write the issuer there, and intermediate authorities after the certificate`,
    )
  return { certificates, key, authorities, leaf }
}

const validity = (certificate: X509Certificate) => ({
  from: new Date(certificate.validFrom),
  to: new Date(certificate.validTo),
})

function refuseDates(leaf: X509Certificate, now: Date, path: string): void {
  const { from, to } = validity(leaf)
  if (now > to) throw new Error(`${path} expired on ${to.toISOString()}: renew it`)
  if (now < from)
    throw new Error(`${path} is not valid before ${from.toISOString()}: check the clock, or issue it again`)
}

const purposes = { '1.3.6.1.5.5.7.3.1': 'server auth', '1.3.6.1.5.5.7.3.2': 'client auth' }

/** Certificates of clients only are the default of some issuers. */
function refusePurposes({ keyUsage }: X509Certificate, path: string): void {
  const [missing] = Object.entries(purposes).filter(
    ([id]) => keyUsage !== undefined && !keyUsage.includes(id),
  )
  if (missing)
    throw new Error(`${path} lacks the usage '${missing[1]}': issue it with server auth and client auth`)
}

/** Whether the certificate, or an intermediate above it, was issued by an authority. */
function hasChain(
  certificate: X509Certificate,
  intermediates: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
  now: Date,
): boolean {
  const isIssuer = (issuer: X509Certificate): boolean => {
    const { from, to } = validity(issuer)
    return (
      issuer.ca &&
      from <= now &&
      now <= to &&
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey)
    )
  }
  if (authorities.some(isIssuer)) return true
  return intermediates.some((issuer) => {
    const others = intermediates.filter((one) => one !== issuer)
    return isIssuer(issuer) && hasChain(issuer, others, authorities, now)
  })
}
