import { randomUUID } from 'node:crypto'
import {
  ApiSessionHeartbeat,
  ApiSessionRemoved,
  edgeType,
  RequestClientReSync,
  SessionRemoved,
  ValidateSessionsRequest,
} from '@overlay/channel'
import { boundedPerSource, LINE_LIMITS } from '@overlay/process'
import { fairQueue, pagesOf, runPeriodically, yielder } from '@overlay/process/async'
import type { Methods, PolicyServiceService, Positions } from '@overlay/rpc'
import type { Bus, ChangeLog, FabricEvents, Source } from '@overlay/store/change-log'
import { type Concern, onMessage } from '../channel/handlers.js'
import type { CheckAccess, CheckDial, CheckRouter } from '../domain/router-access.js'
import { FINGERPRINT_EXPIRY_MS, LIST_BYTES, TOKENS_AT_ONCE } from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { endedSessions, unknownSessions } from '../store/ended-session.js'
import { type SessionTokens, sessionKeyIn } from '../tokens/session-tokens.js'
import { type ActivityDeps, openActivity } from './activity.js'
import { type ApiSessionListener, type ApiSessions, openApiSessions } from './api-sessions.js'
import { type ConnectedIdentities, openConnectedIdentities } from './connected-identities.js'
import { type FindSession, type FindSessionDeps, openFindSession } from './find-session.js'
import { followEndedSessions, startPruningEnded } from './follow-ended-sessions.js'
import { openPush, type Push, type PushDeps } from './push-api-sessions.js'
import { openPushReports } from './report-pushed.js'
import { openAccessCheck } from './verify-access.js'

export interface AccessDeps extends Pick<PushDeps, 'grantWatch' | 'policyHead' | 'sync' | 'log'> {
  readonly bus: Bus
  readonly changeLog: ChangeLog
  readonly directory: Pick<RouterDirectory, 'get'>
  readonly presence: Pick<RouterPresence, 'of' | 'onChange' | 'hasFormerReplicas'>
  readonly identity: {
    readonly source: Source
    readonly calls: ActivityDeps['identity']
  }
  readonly policy: PushDeps['policy'] & Pick<Methods<PolicyServiceService>, 'getCommonRouters'>
  readonly tokens: Pick<SessionTokens, 'verify'>
  readonly createSession: FindSessionDeps['createSession']
  /** The ends of the change logs of identity and policy. */
  readonly heads: () => Promise<Positions>
  /** How long reports of activity are gathered. */
  readonly gatherMs?: number
  readonly events: FabricEvents
  /** Of this replica. */
  readonly controllerId: string
}

/** Ends what depends on sessions. May be called again with the same ids. */
export type SessionsEnded = (sessionIds: readonly string[]) => Promise<unknown>

export interface AccessConcern extends Concern, AsyncDisposable {
  readonly checkAccess: CheckAccess
  readonly checkRouter: CheckRouter
  readonly checkDial: CheckDial
  readonly findSession: FindSession
  readonly apiSessions: Pick<ApiSessions, 'byId' | 'byToken' | 'revocations'>
  /** The identities that routers of this replica report as connected. */
  readonly connectedIdentities: Pick<ConnectedIdentities, 'of'>
  /** Called in each replica when sessions have ended, by whichever replica. A failure repeats all calls. */
  onSessionsEnded(listener: SessionsEnded): void
  /** Called with each change of the revocations of API sessions. */
  onRevocations(listener: RevocationListener): void
}

export type RevocationListener = Required<Pick<ApiSessionListener, 'revoked' | 'reinstated' | 'reloaded'>>

/** Routers take turns: no one may keep all connections to the database busy. */
const checkLimits = { name: 'session-checks', running: 2, waiting: 10_000 }

/** API sessions and sessions: what routers receive of them, and how their claims are verified. */
export async function accessConcern(deps: AccessDeps): Promise<AccessConcern> {
  await using opening = new AsyncDisposableStack()
  const { bus, changeLog, directory, log, identity, policy, heads, presence, tokens } = deps
  const { db } = changeLog
  const endListeners: SessionsEnded[] = []
  const routerCount = (): number => push.routers().size
  /** wire: routers with the data model ask only the controller that has sent an API session last, even if it is not connected. */
  function resendTo(routerId: string): void {
    for (const router of push.routers())
      if (router.routerId === routerId && router.features.hasDataModel) push.connect(router)
  }
  const reports = opening.use(openPushReports(bus, randomUUID(), routerCount))
  const push: Push = opening.use(openPush({ ...deps, sessions: () => apiSessions, pushed: reports.pushed }))
  const revocationListeners: RevocationListener[] = []
  const listener: ApiSessionListener = {
    ...push,
    revoked(id, revocation) {
      for (const each of revocationListeners) each.revoked(id, revocation)
    },
    reinstated(id) {
      for (const each of revocationListeners) each.reinstated(id)
    },
    reloaded() {
      push.reloaded()
      for (const each of revocationListeners) each.reloaded()
    },
  }
  const apiSessions = opening.use(await openApiSessions(identity.source, listener, log))
  const gathered = deps.gatherMs !== undefined && { gatherMs: deps.gatherMs }
  const { mayHave, mayConnect } = push
  const activity = opening.use(
    openActivity({ db, identity: identity.calls, apiSessions, mayHave, log, ...gathered }),
  )
  const connectedIdentities = opening.use(openConnectedIdentities({ ...deps, activity, mayConnect }))
  const notifyRouters = async (ids: readonly string[]): Promise<void> => {
    if (push.routers().size > 0) push.sessionsEnded(await endedSessions(db, ids))
  }
  opening.use(await followEndedSessions(changeLog, notifyRouters))
  // apart, so that no router waits for what depends on sessions
  const notifyListeners = (ids: readonly string[]) =>
    Promise.all(endListeners.map((listener) => listener(ids)))
  opening.use(await followEndedSessions(changeLog, notifyListeners))
  opening.use(startPruningEnded(changeLog))
  opening.use(presence.onChange({ connectionEnded: resendTo }))
  const checks = fairQueue(checkLimits)
  const isLogged = boundedPerSource(LINE_LIMITS)
  opening.use(runPeriodically(FINGERPRINT_EXPIRY_MS, async () => apiSessions.expire()))

  const findSession = openFindSession({ db, createSession: deps.createSession })
  const opened = opening.move()
  return {
    apiSessions,
    connectedIdentities,
    findSession,
    ...openAccessCheck({ db, tokens, apiSessions, policy, heads, presence, findSession }),
    onSessionsEnded: (listener) => void endListeners.push(listener),
    onRevocations: (listener) => void revocationListeners.push(listener),
    connected(router) {
      if (directory.get(router.routerId)?.isEdge) push.connect(router)
    },
    disconnected(router) {
      push.disconnect(router)
      connectedIdentities.disconnected(router)
    },
    handlers: [
      onMessage(
        edgeType.apiSessionHeartbeat,
        ApiSessionHeartbeat,
        async ({ tokens }, _message, { channel, routerId }) => {
          for (const page of pagesOf(tokens, TOKENS_AT_ONCE)) {
            if (channel.closed.aborted) return
            const unknown = await activity.note(page, routerId)
            if (unknown.length === 0) continue
            const body = ApiSessionRemoved.encode({ tokens: [...unknown], ids: [] }).finish()
            channel.send({ type: edgeType.apiSessionRemoved, body })
          }
        },
        { mostBytes: LIST_BYTES, items: ({ tokens }) => tokens.length },
      ),
      connectedIdentities.handler,
      onMessage(edgeType.requestClientReSync, RequestClientReSync, ({ reason }, _message, router) => {
        const { routerId } = router
        if (isLogged(routerId))
          log.info({ routerId, reason: reason.slice(0, 200) }, 'router asks for all API sessions')
        push.resync(router)
      }),
      onMessage(
        edgeType.validateSessions,
        ValidateSessionsRequest,
        async ({ sessionTokens }, _message, { routerId, channel, features }) => {
          const yieldNow = yielder()
          for (const page of pagesOf(sessionTokens, TOKENS_AT_ONCE)) {
            const keys: string[] = []
            for (const token of page) {
              keys.push(sessionKeyIn(token))
              await yieldNow()
            }
            if (channel.closed.aborted) return
            const ended = await checks({ source: routerId, name: '' }, () => unknownSessions(db, keys))
            if (ended.size === 0) continue
            const isEnded = (_: string, at: number): boolean => ended.has(keys[at] ?? '')
            const ids = features.hasDataModel ? keys.filter(isEnded) : []
            const body = SessionRemoved.encode({ tokens: page.filter(isEnded), ids }).finish()
            channel.send({ type: edgeType.sessionRemoved, body })
          }
        },
        { mostBytes: LIST_BYTES, items: ({ sessionTokens }) => sessionTokens.length },
      ),
    ],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
