import { boundedPerSource, usualLimits } from '@overlay/process'
import type { Logger } from 'pino'

/** Logs failures that messages of routers cause, a limited number of each router: it can repeat what fails. */
export type FailureLog = (routerId: string, facts: object, message: string) => void

export function openFailureLog(log: Logger): FailureLog {
  const isWithin = boundedPerSource(usualLimits, (omitted) =>
    log.warn(
      { omitted, withinSeconds: usualLimits.withinMs / 1000 },
      'failures that routers cause not logged',
    ),
  )
  return (routerId, facts, message) => {
    if (isWithin(routerId)) log.error({ ...facts, routerId }, message)
  }
}
