import { edgeRouter, identity, referenceTo, service } from '@overlay/model'
import { type Context, type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { sizeOf } from '../domain/bitset.js'
import { commonRouters, mayUse, routersOfIdentity, routersOfService } from '../domain/queries.js'
import type { Engine } from '../engine/engine.js'

type Routers = Pick<Methods<SessionsServiceService>, 'describeRouters'>

/** What stands between an identity and a service, by policy alone. */
export async function policyAdvice(
  { state, namesOf }: Engine,
  sessions: Routers,
  identityId: string,
  serviceId: string,
  context: Context,
): Promise<object> {
  const identityName = namesOf('identities').get(identityId)
  if (identityName === undefined) throw notFound('identity', identityId)
  const serviceName = namesOf('services').get(serviceId)
  if (serviceName === undefined) throw notFound('service', serviceId)

  const common = commonRouters(state, identityId, serviceId)
  const { json } = common.length > 0 ? await sessions.describeRouters({ ids: common }, context) : { json: [] }
  const routers = common.map((id, at) => ({
    ...referenceTo(edgeRouter, id, namesOf('edge-routers').get(id)),
    isOnline: isOnline(json[at]),
  }))
  // wire: what is false or zero is left out, and no routers are null
  return {
    identityId,
    identity: referenceTo(identity, identityId, identityName),
    serviceId,
    service: referenceTo(service, serviceId, serviceName),
    ...(mayUse(state, identityId, serviceId, 'Bind') && { isBindAllowed: true }),
    ...(mayUse(state, identityId, serviceId, 'Dial') && { isDialAllowed: true }),
    ...count('identityRouterCount', sizeOf(routersOfIdentity(state, identityId))),
    ...count('serviceRouterCount', sizeOf(routersOfService(state, serviceId))),
    commonRouters: routers.length > 0 ? routers : null,
  }
}

/** Empty where the owner knows nothing of the router. */
const isOnline = (described: Uint8Array | undefined): boolean =>
  described !== undefined &&
  described.length > 0 &&
  (JSON.parse(Buffer.from(described).toString()) as { isOnline: boolean }).isOnline

const count = (name: string, number: number): object => (number > 0 ? { [name]: number } : {})
