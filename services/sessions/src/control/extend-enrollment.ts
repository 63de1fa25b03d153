import {
  EdgeError,
  EnrollmentCertsResponse,
  ExtendRouterRequest,
  ExtendRouterVerifyRequest,
  edgeType,
} from '@overlay/channel'
import { Fault, ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Concern, onMessage } from './handlers.js'
import type { CertificateRequests, RouterCertificates } from './router-certificates.js'
import type { RouterChannel } from './router-channel.js'

export interface ExtensionDeps {
  readonly certificates: Pick<RouterCertificates, 'ownerOf' | 'replace' | 'prepare' | 'verify'>
  readonly log: Logger
}

const ANSWER_MS = 20_000

/** wire: answers to the verification of a certificate. */
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
export function extendEnrollment({ certificates, log }: ExtensionDeps): Concern {
  const extending = new Set<string>()

  async function extend(router: RouterChannel, request: ExtendRouterRequest): Promise<void> {
    const { routerId, fingerprint, channel } = router
    const owner = await certificates.ownerOf(fingerprint)
    if (owner?.id !== routerId) {
      log.warn({ routerId }, 'certificates not extended: the one of the connection has been replaced')
      return
    }
    const requests: CertificateRequests = {
      csrPem: request.clientCertCsr,
      serverCsrPem: request.serverCertCsr,
    }
    const context = ownContext(AbortSignal.timeout(ANSWER_MS))
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
      const result = await certificates.verify(routerId, certPem, ownContext(AbortSignal.timeout(ANSWER_MS)))
      return result === 'verified' ? { code: '', message: '', cause: '' } : refusals[result]
    } catch (err) {
      log.error({ err, routerId }, 'new certificate of a router not verified')
      return refusals.failed
    }
  }

  return {
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
