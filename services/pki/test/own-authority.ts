import { newKey, openssl } from './openssl.js'

/** A certificate with its key, PEM. */
export interface Certified {
  readonly key: string
  readonly cert: string
}

interface Profile {
  readonly key?: string
  readonly issuer?: Certified // absent: it signs itself
  readonly extensions?: readonly string[]
  readonly digest?: string
  readonly days?: number
}

export const authorityExtensions = [
  'basicConstraints=critical,CA:TRUE',
  'keyUsage=critical,keyCertSign,cRLSign',
  'subjectKeyIdentifier=hash',
]

/** A certificate as an operator makes it with openssl. Absent extensions: those of an authority. */
export function certified(name: string, profile: Profile = {}): Certified {
  const { key = newKey(), issuer, extensions = authorityExtensions, digest = 'sha256', days = 365 } = profile
  const csr = openssl(['req', '-new', '-key', 'key', '-subj', `/O=example/CN=${name}`], { key })
  const by = issuer ? ['-CA', 'ca', '-CAkey', 'cakey'] : ['-signkey', 'key']
  const serial = `0x${Buffer.from(name).toString('hex').slice(0, 30)}`
  const cert = openssl(
    [
      'x509',
      '-req',
      '-in',
      'csr',
      ...by,
      '-set_serial',
      serial,
      '-days',
      `${days}`,
      `-${digest}`,
      '-extfile',
      'ext',
    ],
    { csr, key, ext: extensions.join('\n'), ...(issuer && { ca: issuer.cert, cakey: issuer.key }) },
  )
  return { key, cert }
}

/** The extensions of a server. */
export const serverExtensions = (...hosts: readonly string[]): readonly string[] => [
  'keyUsage=critical,digitalSignature',
  'extendedKeyUsage=serverAuth',
  `subjectAltName=${hosts.map((host) => (/^[\d.]+$|:/.test(host) ? `IP:${host}` : `DNS:${host}`)).join(',')}`,
]
