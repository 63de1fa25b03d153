import { X509Certificate } from 'node:crypto'
import { apiSessionCertificate, isUuid } from '@overlay/model'
import { Fault, type IdentityServiceService, type Methods, notFound } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { authQueriesOf } from '../domain/auth-queries.js'
import { updateClientInfo } from '../login/client-info.js'
import { secondToken } from '../login/second-token.js'
import { bearerMessage, sessionMessage } from '../login/session-message.js'
import { markTokensSeen } from '../store/access-tokens.js'
import * as store from '../store/api-sessions.js'
import { bearerSession, noteSecondToken, sessionById, sessionByToken } from '../store/api-sessions.js'
import { openRouterSession as openSession } from '../store/router-sessions.js'
import { addSessionCertificate } from '../store/session-certificates.js'
import type { Deps } from './deps.js'

/** API sessions: for gateways, routers and the caller. */
export function sessionMethods(deps: Deps) {
  const { changeLog, credentialFeed, lifetimes, pki } = deps
  const { db } = changeLog
  return {
    async getApiSession({ token, bearerTokens }, context) {
      const { changeLog, lifetimes, credentialFeed } = deps
      const session = isUuid(token)
        ? await sessionByToken(changeLog.db, token, lifetimes.lifetimeSeconds)
        : undefined
      if (!session) throw new Fault('UNAUTHORIZED')
      const demand = { ...session, requiredSigner: session.demands.requireExtJwtSigner }
      const second = await secondToken(deps, context, demand, bearerTokens)
      // routers learn it before the answer, as after a login
      if (second && (await noteSecondToken(changeLog.db, session.id, second))) await credentialFeed.handOver()
      return sessionMessage(session, lifetimes, second)
    },

    async getBearerSession(claims) {
      const session = await bearerSession(changeLog.db, claims, lifetimes.lifetimeSeconds)
      if (!session) throw new Fault('UNAUTHORIZED')
      return bearerMessage(session, lifetimes)
    },

    /** Answers a position of the change log at which the session exists and is fully authenticated. */
    async checkApiSession({ id }) {
      const session = await sessionById(changeLog.db, id, lifetimes.lifetimeSeconds)
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
      await credentialFeed.handOver()
      return { id, chainPem: issued.chainPem, caPem: issued.caPem }
    },

    /** For routers that are identities: the service that holds their control channel has authenticated them. */
    async openRouterSession(request, context) {
      const { routerId, configTypes } = request
      if (configTypes.length > 0) await deps.configTypes.ready(context)
      const session = await openSession(deps.changeLog.db, routerId, configTypes)
      if (!session) throw notFound('identity', routerId)
      await updateClientInfo(deps.changeLog, context, routerId, request)
      await deps.credentialFeed.handOver()
      return {
        session: sessionMessage(session, deps.lifetimes),
        hosting: Buffer.from(JSON.stringify(session.hosting)),
      }
    },

    markActivity: async ({ apiSessionIds, atMs, accessTokenIds }, { deadline }) => ({
      unknownIds: await db.transaction(deadline, async (tx) => {
        const unknown = await store.markActivity(tx, apiSessionIds, atMs)
        await markTokensSeen(tx, accessTokenIds)
        return unknown
      }),
    }),
  } satisfies Partial<Methods<IdentityServiceService>>
}
