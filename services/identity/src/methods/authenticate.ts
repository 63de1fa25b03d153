import type { AuthenticateRequest, Context, IdentityServiceService, Methods } from '@overlay/rpc'
import { admit, refused } from '../login/admit.js'
import { clientInfoOf, replaceClientInfo } from '../login/client-info.js'
import type { Login } from '../login/login.js'
import { secondToken } from '../login/second-token.js'
import { apiSessionEvent } from '../login/session-event.js'
import { sessionMessage } from '../login/session-message.js'
import { type NewSession, type OpenedSession, openSession, type SecondToken } from '../store/api-sessions.js'
import type { Deps } from './deps.js'

/** Opens a session for what was presented. Callers cannot tell refusals apart. */
export const authenticate =
  (deps: Deps): Methods<IdentityServiceService>['authenticate'] =>
  async (request, context) => {
    const { opened, untrustedBy } = await openAtOnce(deps, request, context)
    const { session, second } = opened ?? (await openStepByStep(deps, { ...request, untrustedBy }, context))
    const info = clientInfoOf(request)
    if (info && session.hasNewInfo) await replaceClientInfo(deps.changeLog, context, session.identityId, info)
    deps.events?.emit(apiSessionEvent('created', session))
    await deps.credentialFeed.handOver()
    return sessionMessage(session, deps.lifetimes, second)
  }

interface Opened {
  readonly session: OpenedSession
  readonly second?: SecondToken | undefined
}

/** What is not opened takes the steps, which find the reason for a refusal. */
interface TriedAtOnce extends Partial<Pick<Login, 'untrustedBy'>> {
  readonly opened?: Opened | undefined
}

/** A login by a certificate of the network, in the statement that opens its session. */
async function openAtOnce(
  { trustedLeaves, configTypes: known, sessionBatches }: Deps,
  request: AuthenticateRequest,
  context: Context,
): Promise<TriedAtOnce> {
  const { method, peerCertificates, ipAddress, configTypes } = request
  if (method !== 'cert') return {}
  const now = new Date()
  const { leaf, trusted } = await trustedLeaves.find(peerCertificates, context, now)
  if (!leaf) return { untrustedBy: trusted }
  if (configTypes.length > 0) await known.ready(context)
  const info = clientInfoOf(request)
  const session = await sessionBatches.byCertificate({ leaf, now, ipAddress, configTypes, info })
  return { opened: session && { session } }
}

async function openStepByStep(
  deps: Deps,
  request: AuthenticateRequest & Pick<TriedAtOnce, 'untrustedBy'>,
  context: Context,
): Promise<Opened> {
  const { method, ipAddress, configTypes } = request
  const login = await admit(deps, context, request)
  const { subject } = login
  const second = await secondToken(deps, context, subject, request.bearerTokens)
  if (configTypes.length > 0) await deps.configTypes.ready(context)
  const fresh: NewSession = {
    ...subject,
    ipAddress,
    configTypes,
    isCertExtendable: method === 'cert' && subject.isIssuedByNetwork,
    certificate: method === 'cert' ? login.certificates[0] : undefined,
    second,
    info: clientInfoOf(request),
  }
  const session =
    (method === 'password' ? await deps.sessionBatches.byPassword(fresh) : undefined) ??
    (await openSession(deps.changeLog.db, fresh))
  if (!session) throw refused(login, method, 'gone meanwhile')
  return { session, second }
}
