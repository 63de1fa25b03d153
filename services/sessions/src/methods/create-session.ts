import { apiSession, referenceTo, service, timeText } from '@overlay/model'
import {
  type Context,
  Fault,
  invalid,
  type Methods,
  type Position,
  type Positions,
  type SessionsServiceService,
} from '@overlay/rpc'
import { type ChangeLog, latest, writeChanges } from '@overlay/store/change-log'
import { tagsOf } from '@overlay/store/kind-store'
import { sessionEvent } from '../access/session-event.js'
import type { ClientRouter } from '../domain/client-router.js'
import type { AccessQuestion, Grant } from '../grants/grants.js'
import { edgeRoutersOf, wireMembers } from '../kinds/session.js'
import { followedPositions } from '../store/followed.js'
import { openSessionInserter, type SessionRow } from '../store/insert-session.js'
import { batchedClientRouters } from '../store/router.js'
import { endSession } from '../store/session.js'
import type { Deps } from './method-deps.js'

type CreateDeps = Pick<Deps, 'identity' | 'grants' | 'held' | 'clientRouters' | 'clientToken'> &
  Partial<Pick<Deps, 'events'>> & { readonly changeLog: Pick<ChangeLog, 'db' | 'write'> }

/** How often policy is asked when changes overtake its grants. */
const ATTEMPTS = 3

/**
 * Creates a session, the right to dial or bind a service. Each create runs every check, also if the session exists.
 * differs: the original answers an existing session unchecked, and stores none for callers with access tokens.
 */
export function createSession(deps: CreateDeps): Methods<SessionsServiceService>['createSession'] {
  const { grants, held, clientRouters, clientToken } = deps
  const { db } = deps.changeLog
  const storedRouters = batchedClientRouters(db)
  const insert = openSessionInserter(db, (session) => deps.events?.emit(sessionEvent('created', session)))

  async function edgeRouters(ids: readonly string[], written: Position | undefined): Promise<EdgeRouters> {
    const routers = clientRouters.of(ids, written)
    return routers === undefined ? edgeRoutersOf(ids, await storedRouters(ids)) : routers
  }
  /** Without a router online that would evaluate the posture, policy decides as for other clients. */
  async function ask(question: AccessQuestion, context: Context): Promise<Grant> {
    const grant = await grants.ask(question, context)
    if (!grant.postureAtRouters || clientRouters.evaluating(grant.routerIds).length > 0) return grant
    return grants.ask({ ...question, hasAccessToken: false }, context)
  }
  /**
   * The routers that may carry the session. Undefined: it must end, because it is one of another kind. Its kind never
   * changes: a sweep may just have evaluated the access of the former kind.
   */
  function routersFor(row: SessionRow, grant: Grant): readonly string[] | undefined {
    if (!row.postureAtRouters) return grant.postureAtRouters ? undefined : grant.routerIds
    const evaluating = clientRouters.evaluating(grant.routerIds)
    return grant.postureAtRouters || evaluating.length > 0 ? evaluating : undefined
  }
  async function end(row: SessionRow, context: Context): Promise<void> {
    const position = await writeChanges(deps.changeLog, context, (tx) => endSession(tx, row.id))
    if (position) deps.events?.emit(sessionEvent('deleted', row))
  }
  async function answer(
    row: SessionRow,
    serviceName: string,
    routerIds: readonly string[],
    written: Position | undefined,
  ) {
    const routers = await edgeRouters(routerIds, written)
    return { json: response(row, await clientToken(row, routerIds), serviceName, routers) }
  }
  return async (request, callContext) => {
    const { identityId, apiSessionId, isAdmin } = callContext.caller
    const type = request.type === '' ? 'Dial' : request.type // wire: a body without a type creates a Dial session
    if (type !== 'Dial' && type !== 'Bind') throw invalid('type', 'invalid session type', type)
    const tags = request.tags.length > 0 ? tagsOf(JSON.parse(Buffer.from(request.tags).toString())) : {}
    const { serviceId, apiSessionAt = callContext.positions.identity, hasAccessToken } = request
    const question = { identityId, apiSessionId, serviceId, type, isAdmin, hasAccessToken } as const
    const written = callContext.positions

    let grant = grants.find(question, written)
    const existing = grant && held.find(question, written.sessions)
    const usable = grant && existing && routersFor(existing, grant)
    if (grant && existing && usable) {
      return answer(existing, grant.serviceName, usable, written.sessions)
    }

    let least = callContext.positions
    if (apiSessionAt) least = latest(least, { identity: apiSessionAt }) // policy must know the identity of the session
    for (let asked = 0; ; ) {
      if (!grant) {
        if (asked++ === ATTEMPTS)
          throw new Fault('UNAVAILABLE', 'access changes faster than it can be checked')
        grant = await ask(question, { ...callContext, positions: least })
      }
      const { policyIds, serviceName, postureAtRouters } = grant
      const session = {
        type,
        apiSessionId,
        identityId,
        serviceId,
        servicePolicies: [...policyIds],
        postureAtRouters,
        tags,
      } as const
      const proven = asked <= 1 ? apiSessionAt : undefined
      const authorized = await authorizedPositions(deps, grant.positions, callContext, proven)
      const row = await held.keep(() => insert({ ...session, authorized }))
      const usable = row && routersFor(row, grant)
      if (row && usable) return answer(row, serviceName, usable, written.sessions)
      if (row) await end(row, callContext)
      grant = undefined
      least = { ...least, ...(await followedPositions(db)) }
    }
  }
}

type EdgeRouters = readonly ClientRouter[] | null

/**
 * The positions of the grant, that of the identity stream not beyond the position at which the API session is proven to
 * exist. The gateway proves it up to the position in the request. If that is not enough, its owner is asked.
 */
async function authorizedPositions(
  { identity }: Pick<Deps, 'identity'>,
  granted: Positions,
  context: Context,
  provenByGateway: Position | undefined,
): Promise<Positions> {
  if (!granted.identity) return granted
  const proven =
    provenByGateway ?? (await identity.checkApiSession({ id: context.caller.apiSessionId }, context)).position
  return proven ? { ...granted, identity: lower(proven, granted.identity) } : granted
}

/** Of two timelines, that of `a` counts: the other cannot pass the comparison with revocations. */
const lower = (a: Position, b: Position): Position =>
  a.timeline === b.timeline && b.number < a.number ? b : a

/** wire: the answer of POST /sessions has all members of the detail but `servicePolicies`. */
function response(row: SessionRow, token: string, serviceName: string, edgeRouters: EdgeRouters): Buffer {
  const { id, type, apiSessionId, identityId, serviceId, tags } = row
  const answer = {
    ...wireMembers(row),
    createdAt: timeText(row.createdAt),
    id,
    tags,
    updatedAt: timeText(row.updatedAt),
    apiSession: referenceTo(apiSession, apiSessionId),
    apiSessionId,
    edgeRouters,
    identityId,
    service: referenceTo(service, serviceId, serviceName),
    serviceId,
    token,
    type,
  }
  return Buffer.from(JSON.stringify(answer))
}
