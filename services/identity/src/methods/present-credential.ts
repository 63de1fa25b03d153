import {
  type Context,
  Fault,
  type Methods,
  type OidcServiceService,
  type PresentCredentialRequest,
} from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import { missingOf } from '../domain/oidc-login.js'
import { type Admitted, admit } from '../login/admit.js'
import { updateClientInfo } from '../login/client-info.js'
import { secondToken } from '../login/external-token.js'
import { refuseLogin } from '../login/refusals.js'
import { findLogin, isIdentified, loginOf, loginState } from '../oidc/login-steps.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { type FirstFactor, identifyLogin, passSecondFactor } from '../store/oidc-logins.js'
import { type Person, personOf } from '../store/subjects.js'

/**
 * Takes the steps of the login method, as a login with a session does. An external token with another credential, or
 * after it, is the second factor. An unknown login is refused like any other.
 */
export const presentCredential =
  (deps: OidcDeps): Methods<OidcServiceService>['presentCredential'] =>
  async (request, context) => {
    const { credential } = request
    if (!credential) throw new Error('call without a credential')
    const { method } = credential
    const login = await loginOf(deps, request)
    if (!login) throw refusedAs(deps, context, method, 'unknown login')
    if (method === 'ext-jwt' && isIdentified(login) && missingOf(login).needsToken) {
      const person = await personOf(deps.changeLog.db, login.identityId)
      if (!person || !(await presentToken(deps, context, request.id, person, credential.bearerTokens)))
        throw new Fault('INVALID_AUTH') // noted where the token was refused
    } else {
      const { subject, ...admitted } = await admit(deps, context, credential)
      await updateClientInfo(deps.changeLog, context, subject.identityId, credential)
      const first = firstFactor({ ...admitted, subject }, credential, request.remoteAddress)
      const identified = await identifyLogin(deps.changeLog.db, request.id, first, request.browser)
      if (!identified) throw refusedAs(deps, context, method, 'unknown login')
      if (!(await presentToken(deps, context, request.id, subject, credential.bearerTokens)))
        return loginState(identified)
    }
    return loginState(await findLogin(deps, request))
  }

/** Records the first of the tokens that satisfies the auth policy. False: none does. */
async function presentToken(
  deps: OidcDeps,
  context: Context,
  id: string,
  person: Person,
  bearerTokens: readonly string[],
): Promise<boolean> {
  const second = await secondToken(deps, context, person, bearerTokens)
  return second !== undefined && passSecondFactor(deps.changeLog.db, id, person.identityId, second)
}

function refusedAs({ noteRefusal }: OidcDeps, context: Context, method: string, reason: string): Fault {
  refuseLogin(noteRefusal, context, { method, reason })
  return new Fault('INVALID_AUTH')
}

type Credential = NonNullable<PresentCredentialRequest['credential']>

function firstFactor(
  { subject, certificates, now }: Admitted,
  { method, configTypes, envInfo, sdkInfo }: Credential,
  remoteAddress: string,
): FirstFactor {
  const { identityId, authenticatorId, certifyingCaId, signerId } = subject
  const isCertificate = method === 'cert'
  return {
    identityId,
    authenticatorId,
    method: subject.method,
    ...(certifyingCaId !== undefined && { certifyingCaId }),
    ...(signerId !== undefined && { signerId }),
    password: subject.password,
    fingerprint: subject.fingerprint,
    isCertExtendable: isCertificate && subject.isIssuedByNetwork,
    certificate: (isCertificate && certificates[0]?.toString()) || null,
    fingerprints: isCertificate ? certificates.map(fingerprintOf) : [],
    configTypes,
    envInfo: objectIn(envInfo),
    sdkInfo: objectIn(sdkInfo),
    ipAddress: remoteAddress,
    atMs: now.getTime(),
  }
}

const objectIn = (json: Uint8Array): object | null =>
  json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as object) : null
