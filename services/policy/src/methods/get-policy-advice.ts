import {
  edgeRouter,
  identity,
  type policyAdvice,
  referenceTo,
  type SchemaValue,
  service,
} from '@overlay/model'
import { type Methods, notFound, type PolicyServiceService } from '@overlay/rpc'
import { sizeOf } from '../domain/bitset.js'
import { commonRouters, mayUse, routersOfIdentity, routersOfService } from '../domain/state-queries.js'
import { jsonOf } from './encoding.js'
import type { MethodDeps } from './method-deps.js'

/** Says which policies stand between an identity and a service. */
export const getPolicyAdvice =
  ({ engine, routers: sessions }: MethodDeps): Methods<PolicyServiceService>['getPolicyAdvice'] =>
  async ({ identityId, serviceId }, context) => {
    await engine.bestEffort(engine.catchUp(context))
    const { state, namesOf } = engine
    const identityName = namesOf('identities').get(identityId)
    if (identityName === undefined) throw notFound('identity', identityId)
    const serviceName = namesOf('services').get(serviceId)
    if (serviceName === undefined) throw notFound('service', serviceId)

    const common = commonRouters(state, identityId, serviceId)
    const { json } =
      common.length > 0 ? await sessions.describeRouters({ ids: common }, context) : { json: [] }
    const routers = common.map((id, i) => ({
      ...referenceTo(edgeRouter, id, namesOf('edge-routers').get(id)),
      isOnline: isOnline(json[i]),
    }))
    // wire: members that are false or 0 are absent; an empty list of routers is null
    const advice: SchemaValue<typeof policyAdvice> = {
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
    return { json: jsonOf(advice) }
  }

/** The description is empty where its owner does not have the router. */
const isOnline = (description: Uint8Array | undefined): boolean =>
  description !== undefined &&
  description.length > 0 &&
  (JSON.parse(Buffer.from(description).toString()) as { isOnline: boolean }).isOnline

const count = <N extends string>(name: N, number: number): { readonly [M in N]?: number } =>
  number > 0 ? ({ [name]: number } as { readonly [M in N]: number }) : {}
