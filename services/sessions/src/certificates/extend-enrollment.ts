import {
  EdgeError,
  EnrollmentCertsResponse,
  ExtendRouterRequest,
  ExtendRouterVerifyRequest,
  edgeType,
} from '@overlay/channel'
import { Fault, ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Concern, onMessage } from '../channel/handlers.js'
import type { RouterChannel } from '../channel/router-channel.js'
import { standingOf } from '../domain/hello.js'
import { EXTEND_MS } from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { CertificateRequests, RouterCertificates } from './router-certificates.js'

export interface ExtensionDeps {
  readonly certificates: Pick<RouterCertificates, 'router' | 'replace' | 'prepare' | 'verify' | 'confirm'>
  readonly directory: Pick<RouterDirectory, 'get'>
  readonly log: Logger
}

/** wire: the error codes that answer the verification of a certificate; an empty code is success. */
const refusals = {
  'nothing to verify': {
    code: 'INVALID_ROUTER_STATE',
    message: 'the router has no certificate to verify',
    cause: '',
  },
  'another certificate': {
    code: 'INVALID_CLIENT_PEM',
    message: 'the certificate is not the one to verify',
    cause: '',
  },
  missing: { code: 'MISSING_CLIENT_PEM', message: 'the certificate is missing', cause: '' },
  failed: { code: 'VERIFY_ERROR', message: 'the certificate could not be verified', cause: '' },
} as const

/** Routers ask for new certificates a week before theirs expire. Open channels of the router stay. */
export function extendEnrollment({ certificates, directory, log }: ExtensionDeps): Concern {
  const extending = new Set<string>()

  async function extend(router: RouterChannel, request: ExtendRouterRequest): Promise<void> {
    const { routerId, channel } = router
    // differs: not by the certificate of the connection, which is older than the router's if it was replaced before
    const owner = await certificates.router(routerId)
    if (!owner) {
      log.warn({ routerId }, 'certificates not extended: the router is disabled or has to enroll')
      return
    }
    const requests: CertificateRequests = {
      csrPem: request.clientCertCsr,
      serverCsrPem: request.serverCertCsr,
    }
    const context = ownContext(AbortSignal.timeout(EXTEND_MS))
    const issue = request.requireVerification ? certificates.prepare : certificates.replace
    const issued = await issue(owner, requests, context)
    if (!issued) return
    const { certPem, serverCertPem, intermediatesPem, caPem } = issued
    const body = EnrollmentCertsResponse.encode({
      clientCertPem: certPem + intermediatesPem,
      serverCertPem: serverCertPem + intermediatesPem,
      caCertsPem: caPem,
    })
    channel.send({ type: edgeType.enrollmentCerts, body: body.finish() })
    log.info({ routerId }, 'certificates of a router extended')
  }

  async function verify(routerId: string, certPem: string): Promise<EdgeError> {
    if (certPem === '') return refusals.missing
    try {
      const result = await certificates.verify(routerId, certPem, ownContext(AbortSignal.timeout(EXTEND_MS)))
      return result === 'verified' ? { code: '', message: '', cause: '' } : refusals[result]
    } catch (err) {
      log.error({ err, routerId }, 'new certificate of a router not verified')
      return refusals.failed
    }
  }

  /** Ends former certificates of a router that connects with one that replaced them. */
  async function confirm({ routerId, fingerprint }: RouterChannel): Promise<void> {
    const router = directory.get(routerId)
    const standing = router && standingOf(router, fingerprint)
    if (standing === 'former') log.warn({ routerId }, 'router connected with a certificate that was replaced')
    const isSettled = standing === 'current' && router?.formerFingerprints.length === 0
    if (!standing || standing === 'former' || isSettled) return
    try {
      await certificates.confirm(routerId, fingerprint, ownContext(AbortSignal.timeout(EXTEND_MS)))
    } catch (err) {
      log.warn({ err, routerId }, 'former certificates of a router not ended') // its next connection ends them
    }
  }

  return {
    connected: confirm,
    handlers: [
      onMessage(edgeType.extendRouter, ExtendRouterRequest, async (request, _message, router) => {
        const { routerId } = router
        if (extending.has(routerId)) return // routers repeat a request without an answer
        extending.add(routerId)
        try {
          await extend(router, request)
        } catch (err) {
          if (!(err instanceof Fault)) throw err
          log.warn({ routerId, code: err.code, err }, 'certificates of a router not extended')
        } finally {
          extending.delete(routerId)
        }
      }),
      onMessage(
        edgeType.extendRouterVerify,
        ExtendRouterVerifyRequest,
        async ({ clientCertPem }, message, { routerId, channel }) => {
          const answer = await verify(routerId, clientCertPem)
          channel.reply(message, { type: edgeType.error, body: EdgeError.encode(answer).finish() })
        },
      ),
    ],
  }
}
