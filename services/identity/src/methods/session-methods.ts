import { X509Certificate } from 'node:crypto'
import { apiSessionCertificate, isUuid } from '@overlay/model'
import {
  type AuthenticateRequest,
  type Context,
  Fault,
  type IdentityServiceService,
  type Methods,
  notFound,
} from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { certificatesOf } from '../credentials/certificates.js'
import { authQueriesOf } from '../domain/auth-queries.js'
import { leafOf } from '../domain/leaf.js'
import { admit, refused } from '../login/admit.js'
import { clientInfoOf, replaceClientInfo, updateClientInfo } from '../login/client-info.js'
import { secondToken } from '../login/external-token.js'
import type { Login } from '../login/login.js'
import { apiSessionEvent, bearerMessage, sessionMessage } from '../login/session-message.js'
import {
  bearerSession,
  markActivity,
  type NewSession,
  noteSecondToken,
  type OpenedSession,
  openSession,
  type SecondToken,
  sessionById,
  sessionByToken,
} from '../store/api-sessions.js'
import { openRouterSession } from '../store/router-sessions.js'
import { addSessionCertificate, markTokensSeen } from '../store/session-credentials.js'
import type { MethodDeps } from './method-deps.js'

/** API sessions: for gateways, routers and the caller. */
export function sessionMethods(deps: MethodDeps) {
  const { changeLog, credentialFeed, lifetimes, pki } = deps
  const { db } = changeLog
  return {
    /** Opens a session for a credential. Callers cannot tell refusals apart. */
    async authenticate(request, context) {
      const { opened, untrustedBy } = await openAtOnce(deps, request, context)
      const { session, second } = opened ?? (await openStepByStep(deps, { ...request, untrustedBy }, context))
      const info = clientInfoOf(request)
      if (info && session.hasNewInfo) await replaceClientInfo(changeLog, context, session.identityId, info)
      deps.events?.emit(apiSessionEvent('created', session))
      await credentialFeed.deliver()
      return sessionMessage(session, lifetimes, second)
    },

    async getApiSession({ token, bearerTokens }, context) {
      const session = isUuid(token) ? await sessionByToken(db, token, lifetimes.lifetimeSeconds) : undefined
      if (!session) throw new Fault('UNAUTHORIZED')
      const demand = { ...session, requiredSigner: session.demands.requireExtJwtSigner }
      const second = await secondToken(deps, context, demand, bearerTokens)
      // routers learn it before the answer, as after a login
      if (second && (await noteSecondToken(db, session.id, second))) await credentialFeed.deliver()
      return sessionMessage(session, lifetimes, second)
    },

    async getBearerSession(claims) {
      const session = await bearerSession(db, claims, lifetimes.lifetimeSeconds)
      if (!session) throw new Fault('UNAUTHORIZED')
      return bearerMessage(session, lifetimes)
    },

    /** Answers a position of the change log at which the session exists and is fully authenticated. */
    async checkApiSession({ id }) {
      const session = await sessionById(db, id, lifetimes.lifetimeSeconds)
      if (!session || authQueriesOf(session, session.demands).length > 0) throw new Fault('UNAUTHORIZED')
      return { position: { timeline: session.timeline, number: session.number } }
    },

    /** Issues a certificate for the API session of the caller. It is deleted with the session. */
    async createSessionCertificate({ csrPem }, context) {
      const { identityId, apiSessionId } = context.caller
      const id = newId(apiSessionCertificate.ids)
      const issued = await pki.issueSessionCertificate({ id, identityId, apiSessionId, csrPem }, context)
      const leaf = new X509Certificate(issued.certPem)
      await writeChanges(changeLog, context, async (tx) => {
        const added = await addSessionCertificate(tx, { id, apiSessionId, leaf, pem: issued.chainPem })
        if (!added) throw new Fault('UNAUTHORIZED') // the session has ended meanwhile
        return [added]
      })
      await credentialFeed.deliver()
      return { id, chainPem: issued.chainPem, caPem: issued.caPem }
    },

    /** For routers that are identities: the service that holds their control channel has authenticated them. */
    async openRouterSession(request, context) {
      const { routerId, configTypes } = request
      await deps.waitForConfigTypes(configTypes, context)
      const session = await openRouterSession(db, routerId, configTypes)
      if (!session) throw notFound('identity', routerId)
      await updateClientInfo(changeLog, context, routerId, request)
      await credentialFeed.deliver()
      return {
        session: sessionMessage(session, lifetimes),
        hosting: Buffer.from(JSON.stringify(session.hosting)),
      }
    },

    markActivity: async ({ apiSessionIds, atMs, accessTokenIds }, { deadline }) => ({
      unknownIds: await db.transaction(deadline, async (tx) => {
        const unknown = await markActivity(tx, apiSessionIds, atMs)
        await markTokensSeen(tx, accessTokenIds)
        return unknown
      }),
    }),
  } satisfies Partial<Methods<IdentityServiceService>>
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
  { trust, chains, waitForConfigTypes, sessionBatches }: MethodDeps,
  request: AuthenticateRequest,
  context: Context,
): Promise<TriedAtOnce> {
  const { method, peerCertificates, ipAddress, configTypes } = request
  if (method !== 'cert') return {}
  const now = new Date()
  const trusted = await trust.certificates()
  const [leaf] = (await chains.find(certificatesOf(peerCertificates), trusted, context, now)) ?? []
  if (!leaf) return { untrustedBy: trusted }
  await waitForConfigTypes(configTypes, context)
  const info = clientInfoOf(request)
  const session = await sessionBatches.byCertificate({
    leaf: leafOf(leaf),
    now,
    ipAddress,
    configTypes,
    info,
  })
  return { opened: session && { session } }
}

async function openStepByStep(
  deps: MethodDeps,
  request: AuthenticateRequest & Pick<TriedAtOnce, 'untrustedBy'>,
  context: Context,
): Promise<Opened> {
  const { method, ipAddress, configTypes } = request
  const login = await admit(deps, context, request)
  const { subject } = login
  const second = await secondToken(deps, context, subject, request.bearerTokens)
  await deps.waitForConfigTypes(configTypes, context)
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
  if (!session) throw refused(login, method, 'changed meanwhile')
  return { session, second }
}
