import { setTimeout as pause } from 'node:timers/promises'
import type { Administrator } from './administrator.js'
import { isUnknown, type Run } from './caller.js'
import type { Endpoint } from './endpoint.js'
import { adopt, differences, type ModelKind, overrideKey, type Row } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import { dropEndpoint, type WorkerState } from './worker-state.js'

const LATEST_COMMIT_MS = 12_000 // a write whose answer was lost commits within its deadline, or never

/** Compares the rows of a worker with its model after an operation of unknown outcome or a failover with losses. */
export function resolver(
  { calm, losses, report, gateways }: Run,
  admin: Administrator,
  prefix: string,
  state: WorkerState,
  random: Random,
): () => Promise<void> {
  const { model, names, unsure, losable, endpoints } = state
  const anyGateway = (): number => random.int(gateways.length)

  async function rowsOf(gateway: number): Promise<Record<ModelKind, Row[]>> {
    const rows = async (kind: ModelKind): Promise<Row[]> =>
      (await admin.all<Row>(gateway, kind, `name contains "${prefix}-"`)).rows
    return {
      identities: await rows('identities'),
      services: await rows('services'),
      'service-policies': await rows('service-policies'),
    }
  }

  async function adoptOverrides(): Promise<void> {
    model.overrides.clear()
    for (const identityId of names.keys()) {
      const reply = await admin.insist(anyGateway(), 'GET', `/identities/${identityId}/service-configs`)
      for (const { serviceId, configId } of (reply.data ?? []) as { serviceId: string; configId: string }[])
        model.overrides.set(overrideKey(identityId, serviceId), configId)
    }
  }

  /** The API shows which sessions the database has. All gateways must agree with it. */
  async function checkTokens(endpoint: Endpoint): Promise<void> {
    const { identityId, apiSessionId } = endpoint
    const isActive = endpoints.get(identityId) === endpoint
    const filter = encodeURIComponent(`id="${apiSessionId}"`)
    const { status, data } = await admin.insist(anyGateway(), 'GET', `/api-sessions?filter=${filter}`)
    if (status !== 200) return
    const exists = (data as readonly unknown[]).length === 1
    const isKept = exists || !isActive || unsure.has(apiSessionId) || unsure.has(identityId)
    if (isKept) report.passed(rules.kept)
    else report.violated(rules.kept, { apiSessionId, identityId })
    for (const gateway of gateways.keys()) {
      const reply = await endpoint.call(gateway, 'GET', '/current-api-session')
      if (reply.status === (exists ? 200 : 401)) report.passed(rules.sessions)
      else if (!isUnknown(reply))
        report.violated(rules.sessions, { apiSessionId, exists, gateway, status: reply.status })
    }
    if (!exists && isActive) dropEndpoint(state, identityId)
  }

  async function checkAllTokens(): Promise<void> {
    for (const endpoint of [...endpoints.values(), ...state.ended]) await checkTokens(endpoint)
    for (const endpoint of state.ended.splice(0)) endpoint[Symbol.dispose]()
  }

  /**
   * After an operation of unknown outcome, rows that it did not concern must equal the model. After a failover, the same
   * counts for rows that it could not lose. The other rows replace the model.
   */
  async function resolve(): Promise<void> {
    const lossesNow = losses.count()
    const hasLost = state.losses !== lossesNow
    if (hasLost) for (const one of losable) unsure.add(one)
    if (!calm.isCalm() || performance.now() - state.unsureSince < LATEST_COMMIT_MS) {
      await pause(200)
      return
    }
    const rows = await rowsOf(anyGateway())
    const wrong = differences(model, rows, unsure)
    const rule = hasLost ? rules.kept : rules.agree
    for (const difference of wrong) report.violated(rule, { prefix, difference })
    if (wrong.length === 0) report.passed(rule)
    if (hasLost)
      for (const difference of differences(model, rows)) {
        report.note('rows with a lost write')
        report.log('lost', { prefix, difference })
      }
    adopt(model, rows)
    if (hasLost) await checkAllTokens()
    // a lost write may have been the creation of the password
    const isUsable = (id: string): boolean => model.identities.has(id) && !(hasLost && unsure.has(id))
    for (const id of [...names.keys()]) if (!isUsable(id)) names.delete(id)
    for (const id of [...endpoints.keys()]) if (!isUsable(id)) dropEndpoint(state, id)
    await adoptOverrides()
    unsure.clear()
    if (hasLost) losable.clear()
    state.losses = lossesNow
    report.note(hasLost ? 'failover resolved' : 'outcome resolved')
  }

  return resolve
}
