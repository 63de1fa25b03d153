import type { Administrator } from './administrator.js'
import { isSuccess, isUnknown, type Run } from './caller.js'
import type { Endpoint } from './endpoint.js'
import { emptyModel, type Model } from './model.js'
import { rules } from './report.js'

/** What one worker has made, and what it knows of it. */
export interface WorkerState {
  readonly model: Model
  /** Programs that are logged in, by identity. */
  readonly endpoints: Map<string, Endpoint>
  /** User names, by identity. */
  readonly names: Map<string, string>
  /** Ids and names of rows that an operation of unknown outcome may have changed. */
  readonly unsure: Set<string>
  /** Of the latest operation of unknown outcome. */
  unsureSince: number
  /** Where writes go. */
  gateway: number
  /** When something was last written through each gateway. */
  readonly writtenAt: number[]
}

export const emptyWorkerState = (gateways: number): WorkerState => ({
  model: emptyModel(),
  endpoints: new Map(),
  names: new Map(),
  unsure: new Set(),
  unsureSince: 0,
  gateway: 0,
  writtenAt: Array.from({ length: gateways }, () => Number.NEGATIVE_INFINITY),
})

/** Forgets an endpoint whose session may be gone. */
export function dropEndpoint({ endpoints }: WorkerState, identityId: string): void {
  endpoints.get(identityId)?.[Symbol.dispose]()
  endpoints.delete(identityId)
}

export type Write = (
  method: string,
  path: string,
  body: unknown,
  ...concerned: readonly string[]
) => Promise<{ readonly id: string } | undefined>

/** Writes that must succeed. Undefined: the outcome is not known, and what it concerned is unsure. */
export const writer =
  ({ report }: Run, admin: Administrator, holdings: WorkerState): Write =>
  async (method, path, body, ...concerned) => {
    const reply = await admin.call(holdings.gateway, method, path, body)
    holdings.writtenAt[holdings.gateway] = performance.now()
    if (isSuccess(reply)) return (reply.data ?? {}) as { id: string }
    if (isUnknown(reply)) {
      for (const one of concerned) holdings.unsure.add(one)
      holdings.unsureSince = performance.now()
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
