import type { Bus, ChangeLog, FabricEvents, WaitForFollowers } from '@overlay/platform/change-log'
import type { IdentityServiceService, Methods, PolicyServiceService } from '@overlay/rpc'

/** What the methods of this service use. */
export interface Deps {
  readonly changeLog: ChangeLog
  readonly policy: Pick<Methods<PolicyServiceService>, 'authorize'>
  readonly identity: Pick<Methods<IdentityServiceService>, 'checkApiSession'>
  readonly waitForFollowers: WaitForFollowers
  readonly bus: Bus
  readonly events: FabricEvents
}
