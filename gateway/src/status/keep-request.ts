import { isSlow, keepRefusal, keepSlow } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import type { AccessRecord } from '../http/access-log.js'

export const STATUS_API = 'status'

const busyStatuses: ReadonlySet<number> = new Set([429, 503])

/** Keeps slow requests, and those refused for now, for the page. Not those to the page: it waits for replicas that are away. */
export function keepRequest({ c: { env }, status, seconds }: AccessRecord): void {
  const isRefused = busyStatuses.has(status)
  const wasSlow = status !== 429 && isSlow(seconds) // those to wait are answered late
  if (!isRefused && !wasSlow) return
  const { api, operation, requestId, incoming, faultCode: reason } = env
  if (api === STATUS_API) return
  const name = `${api} ${operation || incoming.method}`
  if (wasSlow) keepSlow(name, String(status), seconds, requestId)
  if (!isRefused) return
  const sourceAddress = clientAddressOf(incoming.socket)
  keepRefusal('request refused', { reason, sourceAddress, operation: name, status, requestId })
}
