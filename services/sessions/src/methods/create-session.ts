import { session as definition, kinds, referenceTo, timeText } from '@overlay/model'
import { tagsOf } from '@overlay/platform/kind-store'
import type { Database } from '@overlay/platform/postgres'
import {
  Access,
  type Context,
  Fault,
  type IdentityServiceService,
  invalid,
  type Methods,
  type PolicyServiceService,
  type Position,
  type Positions,
} from '@overlay/rpc'
import { routerDescriber, routerList, type ShownRouters, wireMembers } from '../kinds/session.js'
import type { MakeSession, SessionRow } from '../store/create-session.js'

interface Needs {
  readonly db: Database
  readonly make: MakeSession
  readonly policy: Pick<Methods<PolicyServiceService>, 'authorize'>
  readonly identity: Pick<Methods<IdentityServiceService>, 'checkApiSession'>
  /** Up to where the effects of another schema have been applied here. */
  followed(schema: string): Promise<Position | undefined>
}

type Authorized = Awaited<ReturnType<Methods<PolicyServiceService>['authorize']>>

/** How often an authorization that was overtaken by a change is asked for again. */
const attempts = 3

const accesses = { Dial: Access.ACCESS_DIAL, Bind: Access.ACCESS_BIND } as const

/**
 * Leave to dial or bind a service. Every check is made on each create, also where the session exists already.
 * differs: the original answers an existing session unchecked.
 */
export function sessionCreator(needs: Needs) {
  const { db, make, policy } = needs
  const describe = routerDescriber(db)
  return async (
    request: { serviceId: string; type: string; tags: Uint8Array },
    context: Context,
  ): Promise<{ json: Buffer }> => {
    const { identityId, apiSessionId, isAdmin } = context.caller
    const type = request.type === '' ? 'Dial' : request.type // wire: nothing means Dial
    if (type !== 'Dial' && type !== 'Bind') throw invalid('type', 'invalid session type', type)
    const tags = tagsOf(request.tags.length > 0 ? JSON.parse(Buffer.from(request.tags).toString()) : {})
    const { serviceId } = request

    let known = context
    for (let attempt = 0; attempt < attempts; attempt++) {
      const question = { identityId, serviceId, access: accesses[type], isAdmin, apiSessionId }
      const authorized = await policy.authorize(question, known)
      const positions = await vouched(needs, authorized.positions, known, attempt)
      const policies = authorized.policyIds
      const wanted = { type, apiSessionId, identityId, serviceId, servicePolicies: policies, tags } as const
      const row = await make({ ...wanted, authorized: positions })
      if (row) return { json: shown(row, authorized, await describe(authorized.routerIds)) }
      known = { ...known, positions: await newer(needs, known.positions) }
    }
    throw new Fault('UNAVAILABLE', 'access changes faster than it can be checked')
  }
}

/**
 * The positions of the authorization, that of the identity stream not beyond where the API session itself is known to
 * live. The gateway vouches for it up to the position in the context; when that was not enough, its owner is asked.
 */
async function vouched(
  { identity }: Needs,
  authorized: Positions,
  context: Context,
  attempt: number,
): Promise<Positions> {
  const needed = authorized.identity
  const given = context.positions.identity
  if (!needed) return authorized
  if (attempt === 0 && given) return { ...authorized, identity: lower(given, needed) }
  const { position } = await identity.checkApiSession({ id: context.caller.apiSessionId }, context)
  return position ? { ...authorized, identity: lower(position, needed) } : authorized
}

/** Of two timelines the one that the API session is known on counts: the other cannot pass the guard. */
const lower = (a: Position, b: Position): Position =>
  a.timeline === b.timeline && b.number < a.number ? b : a

async function newer({ followed }: Needs, positions: Positions): Promise<Positions> {
  const [identity, policy] = await Promise.all([followed('identity'), followed('policy')])
  return { ...positions, ...(identity && { identity }), ...(policy && { policy }) }
}

/** wire: all of the detail but `servicePolicies`. */
function shown(row: SessionRow, { routerIds, serviceName }: Authorized, routers: ShownRouters): Buffer {
  const { id, token, type, apiSessionId, identityId, serviceId, tags } = row
  return Buffer.from(
    JSON.stringify({
      ...wireMembers(row),
      createdAt: timeText(row.createdAt),
      id,
      tags,
      updatedAt: timeText(row.updatedAt),
      apiSession: reference(definition.fields.apiSessionId.ref, apiSessionId),
      apiSessionId,
      edgeRouters: routerList(routerIds, routers),
      identityId,
      service: reference(definition.fields.serviceId.ref, serviceId, serviceName),
      serviceId,
      token,
      type,
    }),
  )
}

function reference(kind: string | undefined, id: string, name?: string): object {
  const target = kinds.get(kind ?? '')
  if (!target) throw new Error(`kind '${kind}' is not defined`)
  return referenceTo(target, id, name)
}
