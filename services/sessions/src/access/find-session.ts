import { edgeErrorCode } from '@overlay/channel'
import { type Context, Fault, type Methods, ownContext, type SessionsServiceService } from '@overlay/rpc'
import type { Database } from '@overlay/store/postgres'
import { AccessRefused } from '../domain/router-access.js'
import { FIND_SESSION_MS } from '../limits.js'
import { type HeldSession, heldSessions } from '../store/session.js'

/** Who needs a session that no client holds. */
export interface SessionHolder {
  readonly apiSessionId: string
  readonly identityId: string
  readonly identityName: string
  readonly configTypes: readonly string[]
  /** Of a client that presents access tokens. */
  readonly hasAccessToken: boolean
}

export interface FindSessionDeps {
  readonly db: Database
  readonly createSession: Methods<SessionsServiceService>['createSession']
}

/** Finds or creates a session, by the rules of every client. Throws AccessRefused. */
export type FindSession = (
  holder: SessionHolder,
  serviceId: string,
  type: 'Dial' | 'Bind',
) => Promise<HeldSession>

/** The holder as the caller of services. */
export const holderContext = ({
  apiSessionId,
  identityId,
  identityName,
  configTypes,
}: Omit<SessionHolder, 'hasAccessToken'>): Context => ({
  ...ownContext(AbortSignal.timeout(FIND_SESSION_MS)),
  caller: { identityId, identityName, apiSessionId, isAdmin: false, configTypes },
})

export function openFindSession({ db, createSession }: FindSessionDeps): FindSession {
  const find = heldSessions(db)
  return async (holder, serviceId, type) => {
    const { apiSessionId, hasAccessToken } = holder
    const key = { apiSessionId, serviceId, type }
    const request = { serviceId, type, tags: Buffer.alloc(0), apiSessionAt: undefined, hasAccessToken }
    let held = await find(key)
    if (!held) {
      await createSession(request, holderContext(holder)).catch((err: unknown) => {
        throw refusalOf(err) ?? err
      })
      held = await find(key) // with its stored token
    }
    if (!held) throw new AccessRefused(edgeErrorCode.invalidSession, 'invalid session')
    return held
  }
}

function refusalOf(err: unknown): AccessRefused | undefined {
  if (!(err instanceof Fault)) return undefined
  switch (err.code) {
    case 'NOT_FOUND':
    case 'COULD_NOT_VALIDATE':
      return new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
    case 'INVALID_POSTURE':
      return new AccessRefused(edgeErrorCode.invalidService, 'posture checks of the service do not pass')
    case 'NO_EDGE_ROUTERS_AVAILABLE':
      return new AccessRefused(edgeErrorCode.invalidEdgeRouter, 'invalid edge router for session')
    default:
      return undefined
  }
}
