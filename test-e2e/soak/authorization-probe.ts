import { setTimeout as pause } from 'node:timers/promises'
import type { Administrator } from './administrator.js'
import { isSuccess, type Run } from './caller.js'
import { openEndpoint, password } from './endpoint.js'
import { rules } from './report.js'

/** An identity with a grant that no operation takes away. */
export interface AuthorizationProbe extends Disposable {
  /** Within this time, each gateway authorizes the identity several times in a row, so that it asks all replicas. */
  check(withinMs: number): Promise<void>
}

const NAME = 'soak-probe'
const TIMES = 8
const POLL_MS = 50

export async function openAuthorizationProbe(run: Run, admin: Administrator): Promise<AuthorizationProbe> {
  const create = async (kind: string, body: object): Promise<string> => {
    const { status, data, error } = await admin.insist(0, 'POST', `/${kind}`, body)
    if (status !== 201) throw new Error(`POST /${kind}: ${status} ${JSON.stringify(error)}`)
    return (data as { id: string }).id
  }
  const identityId = await create('identities', { name: NAME, type: 'Device', isAdmin: false })
  await create('authenticators', { method: 'updb', identityId, username: NAME, password })
  const serviceId = await create('services', { name: NAME, encryptionRequired: true })
  const roles = { identityRoles: [`@${identityId}`], serviceRoles: [`@${serviceId}`] }
  await create('service-policies', { name: NAME, type: 'Dial', semantic: 'AnyOf', ...roles })
  const endpoint = await openEndpoint(run, 0, identityId, NAME)
  if (!('apiSessionId' in endpoint)) throw new Error(`login of the probe: ${endpoint.status}`)
  return {
    async check(withinMs) {
      const deadline = performance.now() + withinMs
      for (const gateway of run.gateways.keys())
        for (let successes = 0; successes < TIMES; ) {
          const sentAt = performance.now()
          const reply = await endpoint.call(gateway, 'POST', '/sessions', { serviceId, type: 'Dial' })
          successes = isSuccess(reply) ? successes + 1 : 0
          if (successes > 0) continue
          const { status, error } = reply
          if (sentAt > deadline) return run.report.violated(rules.authorizes, { gateway, status, error })
          await pause(POLL_MS)
        }
      run.report.passed(rules.authorizes)
    },
    [Symbol.dispose]: () => endpoint[Symbol.dispose](),
  }
}
