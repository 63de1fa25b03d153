import type { Administrator } from './administrator.js'
import { isSuccess, isUnknown, type Run } from './caller.js'
import type { Endpoint } from './endpoint.js'
import { emptyModel, type Model } from './model.js'
import { rules } from './report.js'

/** The entities of one worker, and their expected state. */
export interface WorkerState {
  readonly model: Model
  /** Endpoints with a session, by identity. */
  readonly endpoints: Map<string, Endpoint>
  /** User names, by identity. */
  readonly names: Map<string, string>
  /** Ids and names of rows that an operation of unknown outcome may have changed. */
  readonly unsure: Set<string>
  /** The time of the latest operation of unknown outcome. */
  unsureSince: number
  /** Ids and names of rows and API sessions that the next failover may lose. */
  readonly losable: Set<string>
  /** Endpoints whose session was ended by a write that the next failover may lose. */
  readonly ended: Endpoint[]
  /** How many failovers with losses the model includes. */
  losses: number
  /** The gateway for writes. */
  gateway: number
  /** The time of the last write through each gateway. */
  readonly writtenAt: number[]
}

export const emptyWorkerState = (gateways: number): WorkerState => ({
  model: emptyModel(),
  endpoints: new Map(),
  names: new Map(),
  unsure: new Set(),
  unsureSince: 0,
  losable: new Set(),
  ended: [],
  losses: 0,
  gateway: 0,
  writtenAt: Array.from({ length: gateways }, () => Number.NEGATIVE_INFINITY),
})

/** Drops an endpoint whose session may have ended. */
export function dropEndpoint({ endpoints }: WorkerState, identityId: string): void {
  endpoints.get(identityId)?.[Symbol.dispose]()
  endpoints.delete(identityId)
}

/** Keeps an endpoint whose session has ended if a failover may bring the session back. */
export function retireEndpoint({ ended }: WorkerState, endpoint: Endpoint, mayBeLost: boolean): void {
  if (mayBeLost) ended.push(endpoint)
  else endpoint[Symbol.dispose]()
}

export type Write = (
  method: string,
  path: string,
  body: unknown,
  ...concerned: readonly string[]
) => Promise<{ readonly id: string } | undefined>

/** Writes that must succeed. Undefined: the outcome is unknown, and the concerned rows are unsure. */
export const writer =
  ({ report, losses }: Run, admin: Administrator, state: WorkerState): Write =>
  async (method, path, body, ...concerned) => {
    const mayBeLost = losses.watch()
    const reply = await admin.call(state.gateway, method, path, body)
    state.writtenAt[state.gateway] = performance.now()
    if (mayBeLost()) for (const one of concerned) state.losable.add(one)
    if (isSuccess(reply)) return (reply.data ?? {}) as { id: string }
    if (isUnknown(reply)) {
      for (const one of concerned) state.unsure.add(one)
      state.unsureSince = performance.now()
      report.note('unknown outcome')
    } else
      report.violated(rules.valid, {
        method,
        path,
        body,
        status: reply.status,
        error: reply.error,
      })
    return undefined
  }
