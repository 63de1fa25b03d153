import type { Methods, PkiServiceService } from '@overlay/rpc'
import { answerChallenge } from './answer-challenge.js'
import { checkEnrollment } from './check-enrollment.js'
import type { Deps } from './deps.js'
import { enroll } from './enroll.js'
import { extendCertificate } from './extend-certificate.js'
import { getCaJwt } from './get-ca-jwt.js'
import { getServerCertificate } from './get-server-certificate.js'
import { getTokenKeys } from './get-token-keys.js'
import { getTrustBundle } from './get-trust-bundle.js'
import { grantEnrollment } from './grant-enrollment.js'
import { issueRouterCertificates } from './issue-router-certificates.js'
import { issueSessionCertificate } from './issue-session-certificate.js'
import { refreshEnrollment } from './refresh-enrollment.js'
import { signTokens } from './sign-tokens.js'
import { verifyCa } from './verify-ca.js'

/** All methods of the service. */
export const pkiMethods = (deps: Deps): Methods<PkiServiceService> => ({
  answerChallenge: answerChallenge(deps),
  checkEnrollment: checkEnrollment(deps),
  enroll: enroll(deps),
  extendCertificate: extendCertificate(deps),
  getCaJwt: getCaJwt(deps),
  getServerCertificate: getServerCertificate(deps),
  getTokenKeys: getTokenKeys(deps),
  getTrustBundle: getTrustBundle(deps),
  grantEnrollment: grantEnrollment(deps),
  issueRouterCertificates: issueRouterCertificates(deps),
  issueSessionCertificate: issueSessionCertificate(deps),
  refreshEnrollment: refreshEnrollment(deps),
  signTokens: signTokens(deps),
  verifyCa: verifyCa(deps),
})
