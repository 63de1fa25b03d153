import { certifyAuthority, certifyEndpoint } from './profiles.js'
import { beginOf, type CertifiedKey, forHours, type Signer } from './signer.js'

interface InternalAuthorityRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  readonly commonName: string
  readonly now: Date
}

/** An authority of the certificates between processes. Valid for ten years. */
export const issueInternalAuthority = (request: InternalAuthorityRequest): Promise<CertifiedKey> =>
  certifyAuthority({ ...request, pathLength: 0 })

interface ProcessRequest {
  /** PKCS#8, PEM. */
  readonly privateKey: string
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[]
  readonly commonName: string
  readonly hours: number
  readonly now: Date
}

/** The certificate of a process, for both sides of its connections. It begins a minute before `now`, like an authority of that time. */
export const issueProcess = (
  signer: Signer,
  { hours, now, ...request }: ProcessRequest,
): Promise<CertifiedKey> =>
  certifyEndpoint(signer, { ...request, validity: { ...forHours(hours, now), notBefore: beginOf(now) } })
