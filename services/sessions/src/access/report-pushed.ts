import { CREDENTIALS_PUSHED, type CredentialsPushed, type Position } from '@overlay/rpc'
import type { Bus } from '@overlay/store/change-log'
import { PUSH_GATHER_MS, PUSH_REPORT_MS } from '../limits.js'

/** Reports to identity up to which position its credentials are sent to routers: logins wait for it. */
export function openPushReports(bus: Pick<Bus, 'publish'>, replica: string, routers: () => number) {
  let position: Position | undefined
  let hasReported = false
  let gathering: NodeJS.Timeout | undefined
  let isDue = false

  function report(): void {
    isDue = false
    const count = routers()
    if (!position || (count === 0 && !hasReported)) return
    hasReported = count > 0
    const message: CredentialsPushed = { replica, position, routers: count }
    bus.publish(CREDENTIALS_PUSHED, message)
  }
  const reporting = setInterval(report, PUSH_REPORT_MS)

  return {
    pushed(upto: Position): void {
      position = upto
      if (routers() === 0) return
      if (gathering) {
        isDue = true
        return
      }
      report()
      gathering = setTimeout(() => {
        gathering = undefined
        if (isDue) report()
      }, PUSH_GATHER_MS)
    },
    [Symbol.dispose]() {
      clearInterval(reporting)
      clearTimeout(gathering)
      if (position && hasReported) bus.publish(CREDENTIALS_PUSHED, { replica, position, routers: 0 })
    },
  }
}
