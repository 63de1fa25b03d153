import { type AuthenticateRequest, type Context, Fault } from '@overlay/rpc'
import { afterBadToken } from '@overlay/service'
import { fingerprintOf } from '@overlay/x509'
import { certificatesOf } from '../credentials/certificates.js'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import { subjectTextOf } from '../domain/leaf.js'
import type { Subject } from '../store/subjects.js'
import { certificateSteps } from './certificate.js'
import { externalTokenSteps } from './external-token.js'
import { type Login, type Reason, refusalOf, type Step } from './login.js'
import { passwordSteps } from './password.js'
import { guessOf, refuseLogin } from './refusals.js'

const stepsOf: Readonly<Record<string, readonly Step[]>> = {
  password: passwordSteps,
  cert: certificateSteps,
  'ext-jwt': externalTokenSteps,
}

/** Methods whose credential cannot be guessed, but may be presented repeatedly. */
const tokenMethods = new Set(['ext-jwt'])

type Presented = Pick<
  AuthenticateRequest,
  'method' | 'username' | 'password' | 'peerCertificates' | 'bearerTokens'
> &
  Partial<Pick<Login, 'isLeafAlone' | 'untrustedBy'>>

/** A login whose steps have passed. */
export type Admitted = Login & { readonly subject: Subject }

/** Runs the steps of the login method. INVALID_AUTH: refused. Clients cannot tell refusals apart. */
export async function admit(
  deps: CredentialDeps,
  context: Context,
  { method, ...presented }: Presented,
): Promise<Admitted> {
  const steps = stepsOf[method]
  if (!steps) throw new Fault('INVALID_AUTH_METHOD')
  const login: Login = {
    ...deps,
    context,
    username: presented.username,
    password: presented.password,
    certificates: certificatesOf(presented.peerCertificates),
    isLeafAlone: presented.isLeafAlone ?? false,
    untrustedBy: presented.untrustedBy,
    bearerTokens: presented.bearerTokens,
    now: new Date(),
  }
  const reason = await refusalOf(steps, login)
  if (reason) {
    const refusal = refused(login, method, reason)
    throw tokenMethods.has(method)
      ? await afterBadToken(deps, context, guessOf('token', context), refusal)
      : refusal
  }
  const { subject } = login
  if (!subject) throw refused(login, method, 'unknown')
  return { ...login, subject }
}

/** For every method, so that each refusal leaves a trace and has the same answer. */
export function refused(login: Login, method: string, reason: Reason): Fault {
  const { context, username, subject, certificates, noteRefusal } = login
  const [leaf] = certificates
  refuseLogin(noteRefusal, context, {
    method,
    reason,
    username: username || undefined,
    identityId: subject?.identityId,
    identityName: subject?.identityName,
    ...login.facts,
    ...(method === 'cert' && leaf && { fingerprint: fingerprintOf(leaf), subject: subjectTextOf(leaf) }),
  })
  return new Fault('INVALID_AUTH')
}
