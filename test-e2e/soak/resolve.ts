import { setTimeout as pause } from 'node:timers/promises'
import type { Administrator } from './administrator.js'
import type { Run } from './caller.js'
import { adopt, differences, type ModelKind, overrideKey, type Row } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import { dropEndpoint, type WorkerState } from './worker-state.js'

const LATEST_COMMIT_MS = 12_000 // a write whose answer was lost commits within its deadline, or never

/** Compares the rows of a worker with its model after an operation of unknown outcome. */
export function resolver(
  { calm, report, gateways }: Run,
  admin: Administrator,
  prefix: string,
  state: WorkerState,
  random: Random,
): () => Promise<void> {
  const { model, names, unsure, endpoints } = state
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

  /** After an operation of unknown outcome: rows that it did not concern must equal the model, others replace it. */
  async function resolve(): Promise<void> {
    if (!calm.isCalm() || performance.now() - state.unsureSince < LATEST_COMMIT_MS) {
      await pause(200)
      return
    }
    const rows = await rowsOf(anyGateway())
    for (const difference of differences(model, rows, unsure))
      report.violated(rules.agree, { prefix, difference })
    adopt(model, rows)
    for (const id of [...names.keys()]) if (!model.identities.has(id)) names.delete(id)
    for (const id of [...endpoints.keys()]) if (!model.identities.has(id)) dropEndpoint(state, id)
    await adoptOverrides()
    unsure.clear()
    report.note('outcome resolved')
  }

  return resolve
}
