import { setTimeout as pause } from 'node:timers/promises'
import type { Run } from './caller.js'
import type { Endpoint, ListedService } from './endpoint.js'
import { overrideKey, visible } from './model.js'
import type { Random } from './random.js'
import { rules } from './report.js'
import type { WorkerState } from './worker-state.js'

const OWN_WRITES_ONLY_MS = 2000 // after so long nothing written through another gateway is outstanding
const POLL_MS = 15

/** The address in a private config of this identity. */
export const addressFor = (identityId: string): string => `for-${identityId}`

/** Compares the services that one of the endpoints sees with the model. */
export function viewChecker(run: Run, holdings: WorkerState, random: Random): () => Promise<void> {
  const { calm, report } = run
  const { model, writtenAt } = holdings

  const isSettled = (gateway: number): boolean =>
    calm.isCalm() &&
    writtenAt.every((ms, index) => index === gateway || performance.now() - ms > OWN_WRITES_ONLY_MS)

  /** The services of one endpoint, at once where they must be there, else as soon as they have to be. */
  async function checkViews(): Promise<void> {
    const endpoint = random.pick(holdings.endpoints.values())
    if (!endpoint || holdings.unsure.size > 0) return
    await checkView(endpoint, holdings.gateway, isSettled(holdings.gateway))
    if (random.coin(0.3)) await checkView(endpoint, random.int(run.gateways.length), false)
  }

  async function checkView(endpoint: Endpoint, gateway: number, atOnce: boolean): Promise<void> {
    const { identityId } = endpoint
    const since = performance.now()
    for (;;) {
      const services = await endpoint.services(gateway)
      const found = services && mismatch(identityId, services)
      if (services && !found) {
        report.passed(rules.seen)
        return report.observe(`view${calm.isCalm() ? '' : ', faults'}`, performance.now() - since)
      }
      if (found && (atOnce || calm.isOverdue(since)))
        return report.violated(rules.seen, { identityId, gateway, atOnce, ...found })
      if (!services && calm.isOverdue(since)) return report.note('view without an answer')
      await pause(POLL_MS)
    }
  }

  function mismatch(identityId: string, services: readonly ListedService[]): object | undefined {
    const [wanted, found] = [visible(model, identityId), services.map(({ id }) => id).sort()]
    if (wanted.join() !== found.join()) return { wanted, found }
    for (const { id, config } of services) {
      const address = config['host.v1']?.address
      if (address !== undefined && address !== addressFor(identityId)) {
        report.violated(rules.private, { identityId, serviceId: id, address })
        return undefined // said already
      }
      report.passed(rules.private)
      const isOverridden = model.overrides.has(overrideKey(identityId, id))
      if (isOverridden !== (address !== undefined)) return { serviceId: id, isOverridden, config }
    }
    return undefined
  }

  return checkViews
}
