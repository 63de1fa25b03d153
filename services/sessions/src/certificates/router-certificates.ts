import type {
  Context,
  RouterCertificates as Issued,
  Methods,
  PkiServiceService,
  Position,
} from '@overlay/rpc'
import type { ChangeLog } from '@overlay/store/change-log'
import { bestEffort } from '@overlay/store/postgres'
import { fingerprintOfPem, pemBlocksIn } from '@overlay/x509'
import sql from 'sql-template-tag'
import type { RouterDirectory } from '../routers/router-directory.js'
import {
  type CertifiedRouter,
  certifiedRouter,
  confirmCertificate,
  replaceCertificate,
  saveUnverified,
  unverifiedFingerprint,
  verifyCertificate,
} from '../store/router-certificate.js'

export interface RouterCertificatesDeps {
  readonly changeLog: ChangeLog
  readonly pki: Pick<Methods<PkiServiceService>, 'issueRouterCertificates'>
  readonly directory: Pick<RouterDirectory, 'waitFor'>
}

/** The requests of a router for both its certificates. */
export interface CertificateRequests {
  readonly csrPem: string
  readonly serverCsrPem: string
}

/** Gives routers certificates in place of those that they have. */
export interface RouterCertificates {
  /** The router, not disabled, that has this client certificate. */
  ownerOf(fingerprint: string): Promise<CertifiedRouter | undefined>
  /** The router, unless it is disabled or has to enroll. */
  router(id: string): Promise<CertifiedRouter | undefined>
  /** The old certificate is no longer valid. Undefined: it is no longer valid already. */
  replace(
    router: CertifiedRouter,
    requests: CertificateRequests,
    context: Context,
  ): Promise<(Issued & { readonly position: Position | undefined }) | undefined>
  /** The old certificate is valid until the router has verified that it has received the new one. */
  prepare(
    router: CertifiedRouter,
    requests: CertificateRequests,
    context: Context,
  ): Promise<Issued | undefined>
  verify(
    routerId: string,
    certPem: string,
    context: Context,
  ): Promise<'verified' | 'nothing to verify' | 'another certificate'>
  /** The router has connected with this certificate: former ones become invalid. */
  confirm(routerId: string, fingerprint: string, context: Context): Promise<void>
}

export function routerCertificates({
  changeLog,
  pki,
  directory,
}: RouterCertificatesDeps): RouterCertificates {
  const issue = ({ id, name }: CertifiedRouter, requests: CertificateRequests, context: Context) =>
    pki.issueRouterCertificates({ routerId: id, routerName: name, ...requests }, context)
  const certificateOf = ({ certPem }: Issued) => ({ certPem, fingerprint: fingerprintOfPem(certPem) })
  /** The router may connect with its new certificate right away. */
  const follow = async (position: Position | undefined, { signal }: Context): Promise<void> => {
    if (position) await bestEffort('sessions', directory.waitFor(position, signal))
  }
  return {
    ownerOf: (fingerprint) => certifiedRouter(changeLog.db, sql`fingerprint = ${fingerprint}`),
    router: (id) => certifiedRouter(changeLog.db, sql`id = ${id}`),

    async replace(router, requests, context) {
      const issued = await issue(router, requests, context)
      const written = await replaceCertificate(changeLog, context, router, certificateOf(issued))
      if (!written) return undefined
      await follow(written.position, context)
      return { ...issued, position: written.position }
    },

    async prepare(router, requests, context) {
      const issued = await issue(router, requests, context)
      const written = await saveUnverified(changeLog, context, router, certificateOf(issued))
      if (!written) return undefined
      await follow(written.position, context)
      return issued
    },

    async verify(routerId, certPem, context) {
      const expected = await unverifiedFingerprint(changeLog.db, routerId)
      if (expected === undefined) return 'nothing to verify'
      if (fingerprintIn(certPem) !== expected) return 'another certificate'
      const written = await verifyCertificate(changeLog, context, routerId, expected)
      if (!written) return 'nothing to verify'
      await follow(written.position, context)
      return 'verified'
    },

    async confirm(routerId, fingerprint, context) {
      const written = await confirmCertificate(changeLog, context, routerId, fingerprint)
      await follow(written?.position, context)
    },
  }
}

/** Of the first certificate: the others are its chain. */
function fingerprintIn(pem: string): string | undefined {
  const [leaf] = pemBlocksIn(pem)
  return leaf && fingerprintOfPem(leaf.text)
}
