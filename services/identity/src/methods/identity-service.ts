import type { ChangeLog, WaitForFollowers } from '@overlay/platform/change-log'
import { type EntityServiceService, Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import type { Authorities } from '../credentials/authorities.js'
import type { Enrollments } from '../credentials/enrollments.js'
import type { Hashing } from '../credentials/hashing.js'
import type { Trust } from '../credentials/trust.js'
import { authQueriesOf } from '../domain/auth-queries.js'
import type { Lifetimes } from '../domain/lifetimes.js'
import type { JobCalls } from '../jobs/jobs.js'
import type { ConfigTypes } from '../login/config-types.js'
import { sessionMessage } from '../login/session-message.js'
import { markActivity, sessionById, sessionByToken } from '../store/api-sessions.js'
import { traceIdentity } from '../store/identity-traces.js'
import { disable, enable } from '../store/shut.js'
import { authenticatorAddition } from './add-authenticator.js'
import { authenticate } from './authenticate.js'
import { certificateEnrollment } from './enroll-by-certificate.js'
import { ownAuthenticators } from './own-authenticators.js'
import { type Issuer, ownCertificates } from './own-certificates.js'
import { reEnrollment } from './re-enroll-authenticator.js'
import { type SecondFactorsOptions, secondFactors } from './second-factors.js'

export interface Parts extends Pick<SecondFactorsOptions, 'keySecret' | 'issuer'> {
  /** After a second factor was passed or given up. */
  readonly factorSettled: WaitForFollowers
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly trust: Trust
  readonly authorities: Authorities
  readonly configTypes: ConfigTypes
  readonly pki: Enrollments & Issuer
  readonly entities: Methods<EntityServiceService>
  readonly lifetimes: Lifetimes
  readonly jobs: JobCalls
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function identityService(parts: Parts): Methods<IdentityServiceService> {
  const { changeLog, hashing, pki, entities, lifetimes, jobs } = parts
  const { lifetimeSeconds } = lifetimes
  return {
    authenticate: authenticate(parts),

    async getApiSession({ token }) {
      const session = uuid.test(token)
        ? await sessionByToken(changeLog.db, token, lifetimeSeconds)
        : undefined
      if (!session) throw new Fault('UNAUTHORIZED')
      return sessionMessage(session, lifetimes)
    },

    async checkApiSession({ id }) {
      const session = await sessionById(changeLog.db, id, lifetimeSeconds)
      if (!session || authQueriesOf(session, session.demands).length > 0) throw new Fault('UNAUTHORIZED')
      return { position: { timeline: session.timeline, number: session.number } }
    },

    async markActivity({ apiSessionIds, atMs }, { deadline }) {
      const unknownIds = await changeLog.db.transaction(deadline, (tx) =>
        markActivity(tx, apiSessionIds, atMs),
      )
      return { unknownIds }
    },

    async disableIdentity({ id, durationMinutes }, context) {
      return { id, position: await disable(changeLog, context, id, durationMinutes) }
    },

    async enableIdentity({ id }, context) {
      return { id, position: await enable(changeLog, context, id) }
    },

    traceIdentity: (request, context) => traceIdentity(changeLog, context, request),

    addAuthenticator: authenticatorAddition(parts),
    enrollByCertificate: certificateEnrollment(parts),
    reEnrollAuthenticator: reEnrollment(changeLog, pki),
    ...ownAuthenticators(changeLog, hashing, entities),
    ...ownCertificates(changeLog, pki),
    ...secondFactors({ ...parts, settled: parts.factorSettled }),
    ...jobs,
  }
}
