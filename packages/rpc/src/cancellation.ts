import { expireAfter } from './deadlines.js'
import { Fault } from './fault.js'

/** The end of a call that this process answers: at its limit, at the latest. */
export interface Cancellation {
  readonly signal: AbortSignal
  cancel(reason: Fault): void
  /** The call has been answered: its limit is no longer observed. */
  forget(): void
}

export function openCancellation(limitMs: number): Cancellation {
  const controller = new AbortController()
  const cancel = (reason: Fault): void => controller.abort(reason)
  const forget = expireAfter(limitMs, () => cancel(new Fault('TIMEOUT')))
  return { signal: controller.signal, cancel, forget }
}

/** The fault of a call that its caller has cancelled. */
export const faultOfCancelled = ({ reason }: Pick<AbortSignal, 'reason'>): Fault =>
  reason instanceof Fault ? reason : new Fault('UNAVAILABLE', undefined, reason)
