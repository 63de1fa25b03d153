import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Certificates, certificatesIn, refuseOtherKey } from '@overlay/rpc/pem-files'
import type { Logger } from 'pino'
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

interface Reader {
  readonly texts: string
  readonly context: SecureContext
  refused: string | undefined // the problem that was logged
}

const readers = new Map<string, Reader>()

/**
 * The context for a new connection. Reads the files each time. The error of unusable files names the file, what is wrong
 * and what to do; once there was a usable set, it stays, and the problem is logged.
 */
export function clientContext(place: TlsPlace, log?: Logger): SecureContext {
  const id = JSON.stringify(place)
  const reader = readers.get(id)
  try {
    const files = filesOf(place)
    const texts = JSON.stringify(files)
    if (reader?.texts === texts) {
      reader.refused = undefined
      return reader.context
    }
    const { context, expiresAt } = materialFrom(files)
    if (expiresAt !== undefined) noteCertificate(place.peer, id, expiresAt)
    // a connection may live longer than its files, which are renewed meanwhile
    if (!reader) certificateReads.add(() => clientContext(place, log))
    readers.set(id, { context, texts, refused: undefined })
    return context
  } catch (err) {
    if (!reader) throw err
    const { message: problem } = err as Error
    if (reader.refused === problem) return reader.context
    reader.refused = problem
    metrics.peerCertificateRefused.inc({ peer: place.peer })
    log?.error({ problem }, 'new TLS files refused; the last valid ones stay in use')
    return reader.context
  }
}

interface TextFile {
  readonly path: string
  readonly text: string
}

interface Files {
  readonly authorities: TextFile | undefined
  readonly own: { readonly certificate: TextFile; readonly key: TextFile } | undefined
}

function filesOf({ directory, authorities, isPublic = false, certificate, key }: TlsPlace): Files {
  const below = (name: string): string | undefined => directory && join(directory, name)
  const [certificatePath, keyPath] = [certificate ?? below('tls.crt'), key ?? below('tls.key')]
  const isNamed = certificate !== undefined || key !== undefined
  const hasOwn = isNamed || [certificatePath, keyPath].some((path) => path !== undefined && existsSync(path))
  if (hasOwn && !(certificatePath && keyPath))
    throw new Error(
      `${certificatePath ?? keyPath} is a certificate or key alone: name both, sslcert and sslkey`,
    )
  const ca = authorities ?? (isPublic ? undefined : below('ca.crt'))
  return {
    authorities: ca ? read(ca) : undefined,
    own:
      hasOwn && certificatePath && keyPath
        ? { certificate: read(certificatePath), key: read(keyPath) }
        : undefined,
  }
}

/** `expiresAt`: of the certificate of this process or of the last authority. Undefined: there is neither. */
function materialFrom({ authorities, own }: Files) {
  const ends = authorities
    ? [requireValid(certificatesIn(authorities.text, authorities.path), authorities.path)]
    : []
  if (own) {
    const { certificate, key } = own
    const [leaf] = certificatesIn(certificate.text, certificate.path)
    refuseOtherKey({ leaf, path: certificate.path }, key)
    ends.push(requireValid([leaf], certificate.path))
  }
  return {
    context: createSecureContext({
      minVersion: 'TLSv1.2',
      ca: authorities?.text,
      cert: own?.certificate.text,
      key: own?.key.text,
    }),
    expiresAt: ends.length > 0 ? Math.min(...ends) : undefined,
  }
}

function read(path: string): TextFile {
  try {
    return { path, text: readFileSync(path, 'utf8') }
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
