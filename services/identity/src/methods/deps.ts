import type { openJobMethods } from '@overlay/maintenance/jobs'
import type { EntityServiceService, Methods, PkiServiceService } from '@overlay/rpc'
import type { NoteRefusal } from '@overlay/service'
import type { Consumer, FabricEvents, WaitForFollowers } from '@overlay/store/change-log'
import type { CredentialFeed } from '../credential-feed/credential-feed.js'
import type { CredentialDeps } from '../credentials/deps.js'
import type { Enrollments } from '../credentials/enrollments.js'
import type { Lifetimes } from '../domain/lifetimes.js'
import type { ConfigTypes } from '../login/config-types.js'
import type { SecondFactors } from '../mfa/codes.js'

/** What the methods use. */
export interface Deps extends CredentialDeps {
  readonly credentialFeed: Pick<CredentialFeed, 'handOver'>
  readonly events?: FabricEvents | undefined
  readonly configTypes: ConfigTypes
  readonly noteEnrollmentRefusal: NoteRefusal
  readonly secondFactors: SecondFactors
  /** The name of the network in authenticator apps. */
  readonly totpIssuer: string
  readonly lifetimes: Lifetimes
  readonly pki: Enrollments &
    Pick<Methods<PkiServiceService>, 'extendCertificate' | 'issueSessionCertificate'>
  readonly entities: Methods<EntityServiceService>
  readonly waitForFollowers: WaitForFollowers
  /** Follows the routers, whose identities have their names. */
  readonly routers: Pick<Consumer, 'catchUp'>
  readonly jobMethods: ReturnType<typeof openJobMethods>['methods']
}
