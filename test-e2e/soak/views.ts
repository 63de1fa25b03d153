import { setTimeout as pause } from 'node:timers/promises'
import type { Run } from './caller.js'
import type { Endpoint, ListedService } from './endpoint.js'
import { overrideKey, visible } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import type { WorkerState } from './worker-state.js'

const OWN_WRITES_ONLY_MS = 2000 // afterwards writes through other gateways are visible
const POLL_MS = 15

/** The address in a private config of this identity. */
export const addressFor = (identityId: string): string => `for-${identityId}`

/** Compares the services of an endpoint with the model. */
export function viewChecker(run: Run, state: WorkerState, random: Random): () => Promise<void> {
  const { calm, report } = run
  const { model, writtenAt } = state

  const isSettled = (gateway: number): boolean =>
    calm.isCalm() &&
    writtenAt.every((ms, index) => index === gateway || performance.now() - ms > OWN_WRITES_ONLY_MS)

  /** Checks one endpoint: immediately at the gateway of the last write, within the time limit at others. */
  async function checkViews(): Promise<void> {
    const endpoint = random.pick(state.endpoints.values())
    if (!endpoint || state.unsure.size > 0) return
    await checkView(endpoint, state.gateway, isSettled(state.gateway))
    if (random.coin(0.3)) await checkView(endpoint, random.int(run.gateways.length), false)
  }

  async function checkView(endpoint: Endpoint, gateway: number, atOnce: boolean): Promise<void> {
    const { identityId } = endpoint
    const since = performance.now()
    for (;;) {
      const services = await endpoint.services(gateway)
      const actual = services && mismatch(identityId, services)
      if (services && !actual) {
        report.passed(rules.visible)
        return report.observe(`view${calm.isCalm() ? '' : ', faults'}`, performance.now() - since)
      }
      if (actual && (atOnce || calm.isOverdue(since)))
        return report.violated(rules.visible, { identityId, gateway, atOnce, ...actual })
      if (!services && calm.isOverdue(since)) return report.note('view without an answer')
      await pause(POLL_MS)
    }
  }

  function mismatch(identityId: string, services: readonly ListedService[]): object | undefined {
    const [expected, actual] = [visible(model, identityId), services.map(({ id }) => id).sort()]
    if (expected.join() !== actual.join()) return { expected, actual }
    for (const { id, config } of services) {
      const address = config['host.v1']?.address
      if (address !== undefined && address !== addressFor(identityId)) {
        report.violated(rules.private, { identityId, serviceId: id, address })
        return undefined // reported already
      }
      report.passed(rules.private)
      const isOverridden = model.overrides.has(overrideKey(identityId, id))
      if (isOverridden !== (address !== undefined)) return { serviceId: id, isOverridden, config }
    }
    return undefined
  }

  return checkViews
}
