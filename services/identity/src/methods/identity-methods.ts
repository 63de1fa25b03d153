import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { addAuthenticator } from './add-authenticator.js'
import { authenticate } from './authenticate.js'
import { checkApiSession } from './check-api-session.js'
import { createSessionCertificate } from './create-session-certificate.js'
import type { Deps } from './deps.js'
import { disableIdentity } from './disable-identity.js'
import { enableIdentity } from './enable-identity.js'
import { enrollByCertificate } from './enroll-by-certificate.js'
import { expectEnrollment } from './expect-enrollment.js'
import { extendOwnAuthenticator } from './extend-own-authenticator.js'
import { getApiSession } from './get-api-session.js'
import { getBearerSession } from './get-bearer-session.js'
import { getMfa } from './get-mfa.js'
import { getOwnAuthenticator } from './get-own-authenticator.js'
import { listOwnAuthenticators } from './list-own-authenticators.js'
import { listRecoveryCodes } from './list-recovery-codes.js'
import { markActivity } from './mark-activity.js'
import { openRouterSession } from './open-router-session.js'
import { passMfa } from './pass-mfa.js'
import { reEnrollAuthenticator } from './re-enroll-authenticator.js'
import { removeMfa } from './remove-mfa.js'
import { removeMfaOf } from './remove-mfa-of.js'
import { renewRecoveryCodes } from './renew-recovery-codes.js'
import { reportConnections } from './report-connections.js'
import { releaseRouterName, reserveRouterName } from './reserve-router-name.js'
import { startMfa } from './start-mfa.js'
import { traceIdentity } from './trace-identity.js'
import { updateOwnAuthenticator } from './update-own-authenticator.js'
import { verifyMfa } from './verify-mfa.js'
import { verifyOwnAuthenticator } from './verify-own-authenticator.js'

/** All methods of the service. */
export const identityMethods = (deps: Deps): Methods<IdentityServiceService> => ({
  ...deps.jobMethods,
  addAuthenticator: addAuthenticator(deps),
  authenticate: authenticate(deps),
  checkApiSession: checkApiSession(deps),
  createSessionCertificate: createSessionCertificate(deps),
  disableIdentity: disableIdentity(deps),
  enableIdentity: enableIdentity(deps),
  enrollByCertificate: enrollByCertificate(deps),
  expectEnrollment: expectEnrollment(deps),
  extendOwnAuthenticator: extendOwnAuthenticator(deps),
  getApiSession: getApiSession(deps),
  getBearerSession: getBearerSession(deps),
  getMfa: getMfa(deps),
  getOwnAuthenticator: getOwnAuthenticator(deps),
  listOwnAuthenticators: listOwnAuthenticators(deps),
  listRecoveryCodes: listRecoveryCodes(deps),
  markActivity: markActivity(deps),
  openRouterSession: openRouterSession(deps),
  passMfa: passMfa(deps),
  reEnrollAuthenticator: reEnrollAuthenticator(deps),
  releaseRouterName: releaseRouterName(deps),
  removeMfa: removeMfa(deps),
  removeMfaOf: removeMfaOf(deps),
  renewRecoveryCodes: renewRecoveryCodes(deps),
  reportConnections: reportConnections(deps),
  reserveRouterName: reserveRouterName(deps),
  startMfa: startMfa(deps),
  traceIdentity: traceIdentity(deps),
  updateOwnAuthenticator: updateOwnAuthenticator(deps),
  verifyMfa: verifyMfa(deps),
  verifyOwnAuthenticator: verifyOwnAuthenticator(deps),
})
