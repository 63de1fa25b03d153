import {
  type Context,
  Fault,
  type Methods,
  type OidcServiceService,
  type PresentCredentialRequest,
} from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import { type Admitted, admit } from '../login/admit.js'
import { updateClientInfo } from '../login/client-info.js'
import { refuseLogin } from '../login/refuse-login.js'
import { findLogin, loginOf } from '../oidc/find-login.js'
import { loginState, presenterOf } from '../oidc/login-state.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { type FirstFactor, identifyLogin } from '../store/oidc-logins.js'

/** Takes the steps of the login method, as a login with a session does. An unknown login is refused like any other. */
export const presentCredential =
  (deps: OidcDeps): Methods<OidcServiceService>['presentCredential'] =>
  async (request, context) => {
    const { credential } = request
    if (!credential) throw new Error('call without a credential')
    if (!(await loginOf(deps, request, context)))
      throw refusedAs(deps, context, credential.method, 'unknown login')
    const admitted = await admit(deps, context, credential)
    await updateClientInfo(deps.changeLog, context, admitted.subject.identityId, credential)
    const first = firstFactor(admitted, credential, request.remoteAddress)
    if (!(await identifyLogin(deps.changeLog.db, request.id, first, presenterOf(context, request))))
      throw refusedAs(deps, context, credential.method, 'unknown login')
    return loginState(await findLogin(deps, request, context))
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
