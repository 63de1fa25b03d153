import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import { certificatesOf } from '../credentials/certificates.js'
import { subjectTextOf } from '../domain/subject-text.js'
import { certificate } from '../login/certificate.js'
import { updateClientInfo } from '../login/client-info.js'
import { type Login, type Reason, refusalOf, type Step } from '../login/login.js'
import { password } from '../login/password.js'
import { refuseLogin } from '../login/refuse-login.js'
import { apiSessionEvent } from '../login/session-event.js'
import { sessionMessage } from '../login/session-message.js'
import { openSession } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

/** External signers can be stored, but cannot log in yet. */
const externalToken: readonly Step[] = [() => 'no signer']

const stepsOf: Readonly<Record<string, readonly Step[]>> = {
  password,
  cert: certificate,
  'ext-jwt': externalToken,
}

/** Opens a session for what was presented. Callers cannot tell refusals apart. */
export const authenticate =
  (deps: Deps): Methods<IdentityServiceService>['authenticate'] =>
  async (request, context) => {
    const { method } = request
    const steps = stepsOf[method]
    if (!steps) throw new Fault('INVALID_AUTH_METHOD')
    const login: Login = {
      ...deps,
      context,
      username: request.username,
      password: request.password,
      certificates: certificatesOf(request.peerCertificates),
      now: new Date(),
    }
    const reason = await refusalOf(steps, login)
    if (reason) throw refused(login, method, reason)
    const { subject } = login
    if (!subject) throw refused(login, method, 'unknown')
    await updateClientInfo(deps.changeLog, context, subject.identityId, request)
    if (request.configTypes.length > 0) await deps.configTypes.ready(context)
    const session = await openSession(deps.changeLog.db, {
      ...subject,
      ipAddress: request.ipAddress,
      configTypes: request.configTypes,
      isCertExtendable: method === 'cert' && subject.isIssuedByNetwork,
      certificate: method === 'cert' ? login.certificates[0] : undefined,
    })
    if (!session) throw refused(login, method, 'gone meanwhile')
    deps.events?.emit(apiSessionEvent('created', session))
    await deps.credentialFeed.handOver()
    return sessionMessage(session, deps.lifetimes)
  }

/** For every method, so that each refusal leaves a trace and has the same answer. */
function refused(login: Login, method: string, reason: Reason): Fault {
  const { context, username, subject, certificates, noteRefusal } = login
  const [leaf] = certificates
  refuseLogin(noteRefusal, context, {
    method,
    reason,
    username: username || undefined,
    identityId: subject?.identityId,
    identityName: subject?.identityName,
    ...(method === 'cert' && leaf && { fingerprint: fingerprintOf(leaf), subject: subjectTextOf(leaf) }),
  })
  return new Fault('INVALID_AUTH')
}
