import type { EntityServiceService, IdentityServiceService, Methods } from '@overlay/rpc'
import type { Bus, ChangeLog, FabricEvents, WaitForFollowers } from '@overlay/store/change-log'
import type { Logger } from 'pino'
import type { RouterCertificates } from '../certificates/router-certificates.js'
import type { RouterMessages } from '../channel/router-channel.js'
import type { Grants } from '../grants/grants.js'
import type { HeldSessions } from '../grants/held-sessions.js'
import type { LiveTopology } from '../links/topology.js'
import type { ModelConcern } from '../model/model-concern.js'
import type { ClientRouterList } from '../routers/client-routers.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import type { ClientToken } from '../tokens/client-tokens.js'
import type { SessionTokens } from '../tokens/session-tokens.js'

/** What the methods of this service use. */
export interface Deps {
  readonly changeLog: ChangeLog
  readonly grants: Pick<Grants, 'find' | 'ask'>
  readonly held: Pick<HeldSessions, 'find' | 'keep'>
  readonly clientRouters: ClientRouterList
  readonly clientToken: ClientToken
  readonly tokens: Pick<SessionTokens, 'verify' | 'isFresh'>
  readonly identity: Pick<Methods<IdentityServiceService>, 'checkApiSession'>
  readonly certificates: Pick<RouterCertificates, 'ownerOf' | 'replace'>
  readonly waitForFollowers: WaitForFollowers
  readonly bus: Bus
  readonly directory: RouterDirectory
  readonly presence: RouterPresence
  readonly messages: RouterMessages
  readonly topology: LiveTopology
  readonly model: Pick<ModelConcern, 'validateModel'> | undefined
  readonly entities: Pick<Methods<EntityServiceService>, 'list'>
  readonly events: FabricEvents
  readonly log: Logger
}
