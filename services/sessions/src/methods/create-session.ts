import { apiSession, referenceTo, service, timeText } from '@overlay/model'
import type { ChangeLog } from '@overlay/platform/change-log'
import { tagsOf } from '@overlay/platform/kind-store'
import {
  Access,
  type Context,
  Fault,
  invalid,
  type Methods,
  type Position,
  type Positions,
  type SessionsServiceService,
} from '@overlay/rpc'
import { sessionEvent } from '../access/session-event.js'
import { edgeRoutersOf, wireMembers } from '../kinds/session.js'
import { followedPositions } from '../store/followed.js'
import { type SessionRow, sessionInserter } from '../store/insert-session.js'
import { batchedClientRouters, type ClientRouters } from '../store/router.js'
import type { Deps } from './deps.js'

type CreateDeps = Pick<Deps, 'policy' | 'identity'> &
  Partial<Pick<Deps, 'events'>> & { readonly changeLog: Pick<ChangeLog, 'db'> }
type Authorization = Awaited<ReturnType<Deps['policy']['authorize']>>

/** How often policy is asked when changes overtake its authorizations. */
const ATTEMPTS = 3

const accesses = { Dial: Access.ACCESS_DIAL, Bind: Access.ACCESS_BIND } as const

/**
 * Creates a session, the right to dial or bind a service. Each create runs every check, also if the session exists.
 * differs: the original answers an existing session unchecked, and callers with access tokens with a signed token.
 */
export function createSession(deps: CreateDeps): Methods<SessionsServiceService>['createSession'] {
  const { policy } = deps
  const { db } = deps.changeLog
  const clientRouters = batchedClientRouters(db)
  const insert = sessionInserter(db, (session) => deps.events?.emit(sessionEvent('created', session)))
  return async (request, callContext) => {
    const { identityId, apiSessionId, isAdmin } = callContext.caller
    const type = request.type === '' ? 'Dial' : request.type // wire: nothing means Dial
    if (type !== 'Dial' && type !== 'Bind') throw invalid('type', 'invalid session type', type)
    const tags = tagsOf(request.tags.length > 0 ? JSON.parse(Buffer.from(request.tags).toString()) : {})
    const { serviceId } = request

    let context = callContext
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const question = { identityId, serviceId, access: accesses[type], isAdmin, apiSessionId }
      const authorization = await policy.authorize(question, context)
      const authorized = await authorizedPositions(deps, authorization.positions, context, attempt)
      const servicePolicies = authorization.policyIds
      const session = { type, apiSessionId, identityId, serviceId, servicePolicies, tags } as const
      const row = await insert({ ...session, authorized })
      if (row) return { json: response(row, authorization, await clientRouters(authorization.routerIds)) }
      context = { ...context, positions: { ...context.positions, ...(await followedPositions(db)) } }
    }
    throw new Fault('UNAVAILABLE', 'access changes faster than it can be checked')
  }
}

/**
 * The positions of the authorization, that of the identity stream not beyond the position at which the API session is
 * proven to exist. The gateway proves it up to the position in the context. If that is not enough, its owner is asked.
 */
async function authorizedPositions(
  { identity }: Pick<Deps, 'identity'>,
  authorized: Positions,
  context: Context,
  attempt: number,
): Promise<Positions> {
  if (!authorized.identity) return authorized
  const proven =
    attempt === 0 && context.positions.identity
      ? context.positions.identity
      : (await identity.checkApiSession({ id: context.caller.apiSessionId }, context)).position
  return proven ? { ...authorized, identity: lower(proven, authorized.identity) } : authorized
}

/** Of two timelines, that of `a` counts: the other cannot pass the comparison with revocations. */
const lower = (a: Position, b: Position): Position =>
  a.timeline === b.timeline && b.number < a.number ? b : a

/** wire: all of the detail but `servicePolicies`. */
function response(
  row: SessionRow,
  { routerIds, serviceName }: Authorization,
  routers: ClientRouters,
): Buffer {
  const { id, token, type, apiSessionId, identityId, serviceId, tags } = row
  return Buffer.from(
    JSON.stringify({
      ...wireMembers(row),
      createdAt: timeText(row.createdAt),
      id,
      tags,
      updatedAt: timeText(row.updatedAt),
      apiSession: referenceTo(apiSession, apiSessionId),
      apiSessionId,
      edgeRouters: edgeRoutersOf(routerIds, routers),
      identityId,
      service: referenceTo(service, serviceId, serviceName),
      serviceId,
      token,
      type,
    }),
  )
}
