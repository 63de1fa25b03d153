import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Certificates, certificatesIn, refuseOtherKey } from '@overlay/rpc/pem-files'
import type { Logger } from 'pino'
import { TLS_FILE_READS } from './limits.js'
import { certificateReads, metrics, noteCertificate } from './metrics.js'

/** Where the PEM files are by which this process connects to a server that is not part of the product. */
export interface TlsPlace {
  readonly peer: 'database' | 'bus'
  /** Has `ca.crt`, and `tls.crt` with `tls.key` if the server requires a certificate, as cert-manager mounts them. */
  readonly directory?: string | undefined
  /** Authorities of the server, in place of `ca.crt`. Absent, as the directory: the public ones. */
  readonly authorities?: string | undefined
  /** The public authorities, in place of `ca.crt`. */
  readonly isPublic?: boolean
  /** The certificate of this process and its key, in place of `tls.crt` and `tls.key`. */
  readonly certificate?: string | undefined
  readonly key?: string | undefined
}

interface Material {
  readonly context: SecureContext
  /** Of the certificate of this process or of the last authority. Undefined: there is neither. */
  readonly expiresAt: number | undefined
}

interface Reader {
  context: SecureContext
  state: string
  refused?: string // the state that was unusable
}

const readers = new Map<string, Reader>()

/**
 * The context for a new connection. Reads the files again when they have changed. The error of unusable files names the
 * file, what is wrong and what to do; once there was a usable set, it stays, and the problem is logged.
 */
export function clientContext(place: TlsPlace, log?: Logger): SecureContext {
  const id = JSON.stringify(pathsOf(place, true))
  const paths = pathsOf(place)
  const state = stateOf(paths)
  const reader = readers.get(id)
  if (reader && (reader.state === state || reader.refused === state)) return reader.context
  try {
    const { context, expiresAt } = readMaterial(paths)
    if (expiresAt !== undefined) noteCertificate(place.peer, id, expiresAt)
    // a connection may live longer than its files, which are renewed meanwhile
    if (!reader) certificateReads.add(() => clientContext(place, log))
    readers.set(id, { context, state })
    return context
  } catch (err) {
    if (!reader) throw err
    reader.refused = state
    metrics.peerCertificateRefused.inc({ peer: place.peer })
    log?.error({ problem: (err as Error).message }, 'new TLS files refused; the last valid ones stay in use')
    return reader.context
  }
}

interface Paths {
  readonly authorities: string | undefined
  readonly certificate: string | undefined
  readonly key: string | undefined
}

/** @param withMissing includes the paths of files that may be missing, and are */
function pathsOf(
  { directory, authorities, isPublic = false, certificate, key }: TlsPlace,
  withMissing = false,
): Paths {
  const below = (name: string): string | undefined => directory && join(directory, name)
  const own = { certificate: certificate ?? below('tls.crt'), key: key ?? below('tls.key') }
  const isNamed = certificate !== undefined || key !== undefined
  const hasOwn =
    isNamed || withMissing || [own.certificate, own.key].some((path) => path !== undefined && statusOf(path))
  return {
    authorities: authorities ?? (isPublic ? undefined : below('ca.crt')),
    ...(hasOwn ? own : { certificate: undefined, key: undefined }),
  }
}

/** Differs after each change of the file. Undefined: there is none. */
function statusOf(path: string): string | undefined {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException
    return code === 'ENOENT' ? undefined : code
  }
}

/** Differs after each change of a file. Links are followed. */
const stateOf = (paths: Paths): string =>
  Object.values(paths)
    .map((path) => path && `${path} ${statusOf(path)}`)
    .join('\n')

/** The files change one after the other, or all at once: a mixed set is not used. */
function readMaterial(paths: Paths): Material {
  for (let left = TLS_FILE_READS; ; left--) {
    const state = stateOf(paths)
    try {
      const material = materialFrom(paths)
      if (stateOf(paths) === state || left === 1) return material
    } catch (err) {
      if (stateOf(paths) === state || left === 1) throw err
    }
  }
}

function materialFrom({ authorities, certificate, key }: Paths): Material {
  if ((certificate === undefined) !== (key === undefined))
    throw new Error(`${certificate ?? key} is a certificate or key alone: name both, sslcert and sslkey`)
  const ca = authorities && read(authorities)
  const ends = authorities && ca ? [requireValid(certificatesIn(ca, authorities), authorities)] : []
  const own = certificate && key ? ownFrom(certificate, key) : undefined
  if (own) ends.push(own.expiresAt)
  return {
    context: createSecureContext({ minVersion: 'TLSv1.2', ...(ca && { ca }), ...own?.files }),
    expiresAt: ends.length > 0 ? Math.min(...ends) : undefined,
  }
}

function ownFrom(certificatePath: string, keyPath: string) {
  const [cert, key] = [read(certificatePath), read(keyPath)]
  const [leaf] = certificatesIn(cert, certificatePath)
  refuseOtherKey({ leaf, path: certificatePath }, { text: key, path: keyPath })
  return { files: { cert, key }, expiresAt: requireValid([leaf], certificatePath) }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    const { code = '' } = err as NodeJS.ErrnoException
    const [reason, remedy] = problems[code] ?? [code, 'make it readable for this process']
    throw new Error(`cannot read ${path}: ${reason}: ${remedy}`)
  }
}

const problems: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  ENOENT: ['there is no such file', 'create it, or correct the path'],
  EACCES: ['permission denied', 'make it readable for the account of the processes'],
}

/** When the last one expires. Refuses a file whose certificates have all expired: one authority may replace another. */
function requireValid(certificates: Certificates, path: string): number {
  const last = Math.max(...certificates.map(({ validTo }) => Date.parse(validTo)))
  if (last < Date.now()) throw new Error(`${path} expired on ${new Date(last).toISOString()}: renew it`)
  return last
}
