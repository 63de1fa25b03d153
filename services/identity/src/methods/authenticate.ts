import { metrics } from '@overlay/platform/process'
import { type ApiSession, type Context, Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { certificatesOf } from '../credentials/presented.js'
import type { Lifetimes } from '../domain/lifetimes.js'
import { certificate } from '../login/certificate.js'
import type { ConfigTypes } from '../login/config-types.js'
import { type Login, type Reason, refusalOf, type Step } from '../login/login.js'
import { password } from '../login/password.js'
import { sessionMessage } from '../login/session-message.js'
import { openSession } from '../store/api-sessions.js'
import { keepInfo } from '../store/client-info.js'
import type { Subject } from '../store/subjects.js'

/** An external signer vouches. Who may is not kept yet, so nobody's word counts. */
const externalToken: readonly Step[] = [() => 'no signer']

const methods: Readonly<Record<string, readonly Step[]>> = {
  password,
  cert: certificate,
  'ext-jwt': externalToken,
}

export type Parts = Pick<Login, 'changeLog' | 'hashing' | 'trust' | 'authorities'> & {
  readonly configTypes: ConfigTypes
  readonly lifetimes: Lifetimes
}

type Authenticate = Methods<IdentityServiceService>['authenticate']
type Request = Parameters<Authenticate>[0]

/** From what was presented to an open session. Every refusal is the same to who asks. */
export const authenticate = (parts: Parts): Authenticate =>
  async function authenticate(request, context): Promise<ApiSession> {
    const steps = methods[request.method]
    if (!steps) throw new Fault('INVALID_AUTH_METHOD')
    const login = begin(parts, request, context)
    const reason = await refusalOf(steps, login)
    if (reason) throw refused(request.method, reason)
    const { subject } = login
    if (!subject) throw refused(request.method, 'unknown')
    await keepInfo(parts.changeLog, context, subject.identityId, request.envInfo, request.sdkInfo)
    if (request.configTypes.length > 0) await parts.configTypes.ready(context)
    const session = await openSession(parts.changeLog.db, {
      identityId: subject.identityId,
      authenticatorId: subject.authenticatorId,
      method: subject.method,
      password: subject.password,
      fingerprint: subject.fingerprint,
      voucherId: subject.voucherId,
      ipAddress: request.ipAddress,
      configTypes: request.configTypes,
      isCertExtendable: isExtendable(request.method, subject),
      certificate: request.method === 'cert' ? login.certificates[0] : undefined,
    })
    if (!session) throw refused(request.method, 'gone meanwhile')
    return sessionMessage(session, parts.lifetimes)
  }

const begin = (
  { changeLog, hashing, trust, authorities }: Parts,
  request: Request,
  context: Context,
): Login => ({
  changeLog,
  hashing,
  trust,
  authorities,
  context,
  username: request.username,
  password: request.password,
  certificates: certificatesOf(request.peerCertificates),
  now: new Date(),
})

const isExtendable = (method: string, { isIssuedByNetwork }: Subject): boolean =>
  method === 'cert' && isIssuedByNetwork

function refused(method: string, reason: Reason): Fault {
  metrics.loginRefused.inc({ method, reason })
  return new Fault('INVALID_AUTH')
}
