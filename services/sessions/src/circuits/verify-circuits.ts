import { ctrlType, InspectRequest, InspectResponse } from '@overlay/channel'
import { pagesOf, yielder } from '@overlay/process/async'
import { decodeLimited } from '../channel/handlers.js'
import {
  CIRCUITS_PER_REQUEST,
  INSPECT_CIRCUITS_MS,
  LONGEST_INSPECTION,
  VERIFIED_AT_ONCE,
  VERIFY_DEAD_SECONDS,
  VERIFY_LIVE_SECONDS,
} from '../limits.js'
import type { Circuit } from '../store/circuit.js'
import { ended } from '../store/end-circuits.js'
import { claimUnverified } from '../store/verify-circuits.js'
import type { CircuitDeps } from './circuit-deps.js'
import type { Ending } from './end-circuits.js'

export type VerifyDeps = Pick<CircuitDeps, 'db' | 'messages' | 'presence' | 'log'> & {
  readonly ending: Ending
}

/** The address where a circuit begins or ends at a router. */
interface CircuitEnd {
  readonly circuitId: string
  readonly address: string
}

/** Asks routers for circuits that were not verified for some time, and ends those that have no ends there. */
export async function verifyCircuits({ db, messages, presence, log, ending }: VerifyDeps): Promise<void> {
  const due = await claimUnverified(db, {
    liveControllerIds: [...presence.replicas()],
    liveSeconds: VERIFY_LIVE_SECONDS,
    deadSeconds: VERIFY_DEAD_SECONDS,
    limit: VERIFIED_AT_ONCE,
  })
  const inspect = async ([routerId, ends]: readonly [string, readonly CircuitEnd[]]): Promise<string[]> => {
    const missing: string[] = []
    const yieldNow = yielder()
    for (const page of pagesOf(ends, CIRCUITS_PER_REQUEST)) {
      const requestedValues = page.map(({ circuitId }) => `circuit:${circuitId}`)
      const body = InspectRequest.encode({ requestedValues }).finish()
      const answer = await messages.request(
        routerId,
        { type: ctrlType.inspectRequest, body },
        INSPECT_CIRCUITS_MS,
      )
      const { success, values } = decodeLimited(InspectResponse, answer.body)
      if (answer.type !== ctrlType.inspectResponse || !success) throw new Error('no inspection')
      const found = new Map(values.map(({ name, value }) => [name, value]))
      for (const { circuitId, address } of page) {
        const value = found.get(`circuit:${circuitId}`)
        if (value === undefined || !hasCircuitEnd(value, address)) missing.push(circuitId)
        await yieldNow()
      }
    }
    return missing
  }
  const missing = await Promise.all(
    [...endsByRouter(due)]
      .filter(([routerId]) => presence.isOnline(routerId))
      .map((one) =>
        inspect(one).catch((err: unknown) => {
          log.debug({ err, routerId: one[0] }, 'circuits not verified')
          return []
        }),
      ),
  )
  const ids = [...new Set(missing.flat())]
  if (ids.length > 0) await ending.end(ended.byId(ids), 'unknown')
}

function endsByRouter(circuits: readonly Circuit[]): ReadonlyMap<string, readonly CircuitEnd[]> {
  const routers = new Map<string, CircuitEnd[]>()
  const add = (routerId: string, end: CircuitEnd): void => {
    const ends = routers.get(routerId)
    if (ends) ends.push(end)
    else routers.set(routerId, [end])
  }
  for (const { id: circuitId, routerIds, ingressAddress, egressAddress } of circuits) {
    add(routerIds[0] ?? '', { circuitId, address: ingressAddress })
    add(routerIds.at(-1) ?? '', { circuitId, address: egressAddress })
  }
  return routers
}

/**
 * Whether a router has the end of a circuit at this address, by its answer to an inspection of the circuit. Throws if
 * the answer is not JSON, or too long.
 */
function hasCircuitEnd(inspection: string, address: string): boolean {
  if (inspection.length > LONGEST_INSPECTION) throw new Error('an inspection of a circuit that is too long')
  const { xgressDetails } = JSON.parse(inspection) as { xgressDetails?: unknown }
  return typeof xgressDetails === 'object' && xgressDetails !== null && Object.hasOwn(xgressDetails, address)
}
