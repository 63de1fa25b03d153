import type { openJobMethods } from '@overlay/maintenance/jobs'
import type { EntityServiceService, Methods, PkiServiceService } from '@overlay/rpc'
import type { NoteRefusal } from '@overlay/service'
import type { Consumer } from '@overlay/store/change-log'
import type { Enrollments } from '../credentials/enrollments.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'

/** What the methods use. */
export interface MethodDeps extends OidcDeps {
  readonly noteEnrollmentRefusal: NoteRefusal
  readonly pki: Enrollments &
    Pick<Methods<PkiServiceService>, 'extendCertificate' | 'issueSessionCertificate'>
  readonly entities: Methods<EntityServiceService>
  /** Follows the routers, whose identities have their names. */
  readonly routers: Pick<Consumer, 'catchUp'>
  readonly jobMethods: ReturnType<typeof openJobMethods>['methods']
}
