import { Access, type Context, type Positions } from '@overlay/rpc'
import { admin, as, jsonOf, networkOfFile, newName, parsed, type Replica } from './network.js'

interface Guarded {
  readonly alice: string
  readonly service: string
}

export const caller = (identityId: string, apiSessionId = 's1'): Context => as({ identityId, apiSessionId })
export const domain = (name: string) => ({ id: 'any', typeId: 'DOMAIN', domain: name })
export const now = () => new Date().toISOString()

/** A network of two replicas, with services that posture checks guard. */
export async function postureNetwork() {
  const { network, policy } = await networkOfFile()
  const other = await network.replica()

  const catchUp = (replica = policy) => replica.engine.catchUp({ signal: AbortSignal.timeout(30_000) })
  const check = (body: object) =>
    policy.create('posture-checks', { name: newName(), typeId: 'DOMAIN', domains: ['a.example'], ...body })
  const mfaCheck = (more: object = {}) => check({ typeId: 'MFA', domains: undefined, ...more })
  const submit = (identityId: string, ...responses: object[]) =>
    policy.policy.submitPosture({ responses: responses.map(jsonOf) }, caller(identityId))

  /** An identity that may dial a service if its posture passes the check. */
  async function guarded(checkId: string, more: object = {}) {
    const alice = newName()
    await network.identity.put(alice, { isAdmin: false })
    await network.sessions.put(`r-${alice}`, {})
    const service = await policy.create('services', { name: newName(), encryptionRequired: true })
    const base = { semantic: 'AnyOf', identityRoles: [`@${alice}`], serviceRoles: [`@${service}`] }
    const edgeRouterRoles = [`@r-${alice}`]
    await policy.create('edge-router-policies', { ...base, name: newName(), edgeRouterRoles })
    await policy.create('service-edge-router-policies', { ...base, name: newName(), edgeRouterRoles })
    const dial = { ...base, type: 'Dial', postureCheckRoles: [`@${checkId}`], ...more }
    const policyId = await policy.create('service-policies', { ...dial, name: newName() })
    await catchUp()
    return { alice, service, policyId }
  }

  const authorize = (
    { alice, service }: Guarded,
    positions: Positions = {},
    replica: Replica = policy,
    postureAtRouters = false,
  ) => {
    const request = { identityId: alice, serviceId: service, access: Access.ACCESS_DIAL, isAdmin: false }
    return replica.policy.authorize(
      { ...request, apiSessionId: 's1', postureAtRouters },
      { ...admin, positions },
    )
  }

  /** The API session passes the second factor, or must pass it again, as identity reports it. */
  async function pass(identityId: string, mfaPassedAt: string | null, apiSessionId = 's1') {
    const payload = { identityId, isMfaComplete: true, mfaPassedAt }
    const position = await network.identity.append('api-sessions', apiSessionId, payload)
    await policy.changes.reach({ schema: 'identity', position }, as({}))
  }

  const postureOf = async (identityId: string) =>
    parsed((await policy.policy.getPostureData({ identityId }, admin)).json) as {
      readonly domain: { readonly domain: string | null }
      readonly processes: readonly { readonly postureCheckId: string }[]
      readonly apiSessionPostureData: Readonly<
        Record<string, { readonly mfa: { readonly passedMfa: boolean } }>
      >
    }
  return { network, policy, other, catchUp, check, mfaCheck, submit, guarded, authorize, pass, postureOf }
}
