import type { IdentityServiceService, Methods } from '@overlay/rpc'
import type { Bus, ChangeLog, FabricEvents, WaitForFollowers } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { RouterCertificates } from '../control/router-certificates.js'
import type { RouterMessages } from '../control/router-channel.js'
import type { RouterDirectory } from '../control/router-directory.js'
import type { RouterPresence } from '../control/router-presence.js'
import type { RouterTexts } from '../control/router-texts.js'
import type { Grants } from '../grants/grants.js'
import type { HeldSessions } from '../grants/held-sessions.js'

/** What the methods of this service use. */
export interface Deps {
  readonly changeLog: ChangeLog
  readonly grants: Pick<Grants, 'find' | 'ask'>
  readonly held: Pick<HeldSessions, 'find' | 'keep'>
  readonly routerTexts: RouterTexts
  readonly identity: Pick<Methods<IdentityServiceService>, 'checkApiSession'>
  readonly certificates: Pick<RouterCertificates, 'ownerOf' | 'replace'>
  readonly waitForFollowers: WaitForFollowers
  readonly bus: Bus
  readonly directory: RouterDirectory
  readonly presence: RouterPresence
  readonly messages: RouterMessages
  readonly events: FabricEvents
  readonly log: Logger
}
