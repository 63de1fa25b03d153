import { edgeErrorCode } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { type Methods, ownContext, type PolicyServiceService, type Positions } from '@overlay/rpc'
import { batch, type Database } from '@overlay/store/postgres'
import { type ApiSession, fingerprintsAt } from '../domain/api-session.js'
import {
  type AccessClaim,
  AccessRefused,
  type CheckRouter,
  type DialClaim,
  type GrantedAccess,
} from '../domain/router-access.js'
import { VERIFY_ACCESS_MS } from '../limits.js'
import { evaluatingRouters } from '../routers/evaluating-routers.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { openFindByToken } from '../tokens/find-by-token.js'
import type { SessionTokens } from '../tokens/session-tokens.js'
import type { ApiSessions } from './api-sessions.js'
import type { FindSession } from './find-session.js'

export interface AccessCheckDeps {
  readonly db: Database
  readonly tokens: Pick<SessionTokens, 'verify'>
  readonly apiSessions: Pick<ApiSessions, 'byId' | 'byToken' | 'catchUp'>
  readonly policy: Pick<Methods<PolicyServiceService>, 'getCommonRouters'>
  /** The ends of the change logs that policy follows. */
  readonly heads: () => Promise<Positions>
  readonly presence: Pick<RouterPresence, 'of' | 'hasFormerReplicas'>
  readonly findSession: FindSession
}

interface Pair {
  readonly identityId: string
  readonly serviceId: string
}

/** wire: the codes and texts with which a router refuses a dial or bind of a client. */
const refusals = {
  session: [edgeErrorCode.invalidSession, 'invalid session'],
  'api-session': [edgeErrorCode.invalidApiSession, 'invalid api session'],
  type: [edgeErrorCode.wrongSessionType, 'incorrect session type'],
  certificate: [edgeErrorCode.invalidApiSession, 'invalid api session'],
  router: [edgeErrorCode.invalidEdgeRouter, 'invalid edge router for session'],
} as const

function refused(reason: keyof typeof refusals): AccessRefused {
  metrics.routerClaimRefused.inc({ reason })
  const [code, message] = refusals[reason]
  return new AccessRefused(code, message)
}

/** wire: of several failing checks, the first in this order decides the code: session, API session, type, certificate, router. */
export function openAccessCheck(deps: AccessCheckDeps) {
  const { db, tokens, apiSessions, policy, heads, presence, findSession } = deps
  const findByToken = openFindByToken(db, tokens)

  async function commonRouters(
    pairs: readonly Pair[],
    positions: Positions,
  ): Promise<readonly (readonly string[])[]> {
    const context = { ...ownContext(AbortSignal.timeout(VERIFY_ACCESS_MS)), positions }
    const { routers } = await policy.getCommonRouters({ pairs: [...pairs] }, context)
    return routers.map(({ ids }) => ids)
  }
  const sharedRouters = batch<Pair, readonly string[]>((pairs) => commonRouters(pairs, {}))
  const currentRouters = batch<Pair, readonly string[]>(async (pairs) => commonRouters(pairs, await heads()))

  async function findApiSession(find: () => ApiSession | undefined): Promise<ApiSession | undefined> {
    const found = find()
    if (found) return found
    await apiSessions.catchUp(AbortSignal.timeout(VERIFY_ACCESS_MS))
    return find()
  }

  const checkRouter: CheckRouter = async (routerId, identityId, serviceId) => {
    const pair = { identityId, serviceId }
    const isAllowed =
      (await sharedRouters(pair)).includes(routerId) || (await currentRouters(pair)).includes(routerId)
    if (!isAllowed) throw refused('router')
  }

  function checkCertificate(apiSession: ApiSession, fingerprints: readonly string[]): void {
    const accepted = fingerprintsAt(apiSession, Date.now())
    if (!fingerprints.some((fingerprint) => accepted.includes(fingerprint))) throw refused('certificate')
  }

  return {
    checkRouter,
    /** wire: the identity is that of the token; a router that names another one is refused. */
    async checkDial({ routerId, accessToken, identityId, serviceId, fingerprints }: DialClaim) {
      const apiSession = await findApiSession(() => apiSessions.byToken(accessToken))
      if (apiSession?.tokenId === undefined || apiSession.identityId !== identityId)
        throw refused('api-session')
      checkCertificate(apiSession, fingerprints)
      const holder = { apiSessionId: apiSession.id, identityId, identityName: '', configTypes: [] }
      const session = await findSession({ ...holder, hasAccessToken: true }, serviceId, 'Dial')
      await checkRouter(routerId, identityId, serviceId)
      return { sessionId: session.id, apiSessionId: apiSession.id, identityId, serviceId }
    },
    async checkAccess(claim: AccessClaim): Promise<GrantedAccess> {
      const { routerId, sessionToken, apiSessionToken, fingerprints, type, spend } = claim
      const found = await findByToken(sessionToken, spend)
      if (!found || found === 'invalid') throw refused('session')
      const { session, signed } = found
      const { id, apiSessionId, identityId, serviceId } = session
      const apiSession = await findApiSession(() => apiSessions.byId(apiSessionId))
      if (!apiSession) throw refused('api-session')
      if (signed && apiSessionToken !== '') {
        const presented = await findApiSession(() => apiSessions.byToken(apiSessionToken))
        if (presented?.id !== apiSessionId) throw refused('api-session')
      }
      if (session.type !== type) throw refused('type')
      checkCertificate(apiSession, fingerprints)
      // the client creates another one, for which policy decides
      if (session.postureAtRouters && evaluatingRouters(presence, [routerId]).length === 0)
        throw refused('session')
      await checkRouter(routerId, identityId, serviceId)
      return { sessionId: id, apiSessionId, identityId, serviceId }
    },
  }
}
