import { MOST_ALERT_MEMBERS, MOST_ALERTS } from '../limits.js'
import { isShowable, reportedTime } from './router-text.js'

/** An alert as a router reports it. */
export interface ReportedAlert {
  readonly sourceType: string
  readonly sourceId: string
  /** Milliseconds since 1970. */
  readonly timestamp: bigint
  readonly severity: string
  readonly message: string
  readonly details: readonly string[]
  readonly relatedEntities: ReadonlyMap<string, string>
}

/** wire: how a router names itself as the source or a related entity, and that it is meant as an identity, too. */
const SELF = 'self'
const SELF_AS_IDENTITY = 'ert'

/** wire: the events of alerts. Alerts with texts that cannot be shown are left out. */
export const alertEvents = (alerts: readonly ReportedAlert[], routerId: string) =>
  alerts.slice(0, MOST_ALERTS).flatMap((alert) => {
    const { sourceType, sourceId, timestamp, severity, message } = alert
    const details = alert.details.slice(0, MOST_ALERT_MEMBERS)
    const related = relatedEntities(alert, routerId)
    const texts = [sourceType, sourceId, severity, message, ...details, ...Object.entries(related).flat()]
    const at = reportedTime(timestamp)
    if (!texts.every(isShowable) || at === undefined) return []
    const isSelf = sourceType === SELF
    return {
      namespace: 'alert',
      timestamp: at,
      alert_source_type: isSelf ? 'router' : sourceType,
      alert_source_id: isSelf ? routerId : sourceId,
      severity,
      message,
      details,
      related_entities: related,
    }
  })

function relatedEntities({ relatedEntities: all }: ReportedAlert, routerId: string): Record<string, string> {
  const { [SELF]: self, ...others } = Object.fromEntries([...all].slice(0, MOST_ALERT_MEMBERS))
  return {
    ...others,
    ...(self !== undefined && { router: routerId }),
    ...(self === SELF_AS_IDENTITY && { identity: routerId }),
  }
}
