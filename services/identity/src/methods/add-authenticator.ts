import { authenticator } from '@overlay/model'
import {
  type Context,
  Fault,
  fieldOf,
  type IdentityServiceService,
  type Methods,
  notFound,
} from '@overlay/rpc'
import { newId, uniqueFault } from '@overlay/store/kind-store'
import { fingerprintOfPem } from '@overlay/x509'
import { turnOf } from '../credentials/hashing.js'
import {
  allowedPassword,
  certificateProof,
  enrollingCertificate,
  noProof,
  type Proof,
  refuseUsername,
} from '../credentials/proof.js'
import { authenticatorInserter, authenticatorOfEnrollment } from '../store/authenticators.js'
import { personOf } from '../store/subjects.js'
import type { MethodDeps } from './method-deps.js'

type AddAuthenticator = Methods<IdentityServiceService>['addAuthenticator']
type Request = Parameters<AddAuthenticator>[0]

/** The last step of an enrollment. The first call with an enrollment's id wins; the others get its authenticator. */
export function addAuthenticator(deps: MethodDeps): AddAuthenticator {
  const { changeLog } = deps
  const insert = authenticatorInserter(changeLog)

  const existing = async (enrollmentId: string) => {
    const id = await authenticatorOfEnrollment(changeLog.db, enrollmentId)
    return id === undefined
      ? undefined
      : { authenticatorId: id, created: false, position: await changeLog.head() }
  }
  return async (request, context) => {
    const { identityId, enrollmentId, isIssuedByNetwork } = request
    // a certificate of the network costs next to nothing, so the insert itself decides
    const earlier = isIssuedByNetwork ? undefined : await existing(enrollmentId)
    if (earlier) return earlier
    const id = newId('short')
    const proof = await proofOf(deps, request, context)
    try {
      const row = { id, identityId, enrollmentId, isIssuedByNetwork, tags: {}, ...proof }
      const position = await insert({ ...row, by: context })
      if (position) return { authenticatorId: id, created: true, position }
    } catch (err) {
      throw conflictOf(err, proof) ?? err
    }
    const first = await existing(enrollmentId)
    if (!first) throw notFound('identity', identityId) // identity or authority have been deleted meanwhile
    return first
  }
}

async function proofOf(
  { authorities, changeLog, hashing }: MethodDeps,
  request: Request,
  context: Context,
): Promise<Proof> {
  const { identityId, caId, certPem, username, password, peerCertificates } = request
  if (caId !== '') {
    const cas = (await authorities.all(context.signal)).filter(({ id }) => id === caId)
    return certificateProof(await enrollingCertificate(authorities, cas, peerCertificates, context))
  }
  if (certPem !== '') return { ...noProof, method: 'cert', certPem, fingerprint: fingerprintOfPem(certPem) }
  const person = await personOf(changeLog.db, identityId)
  if (!person) throw notFound('identity', identityId)
  refuseUsername(username)
  const allowed = allowedPassword(password, person.passwordRules)
  const hash = await hashing.hash(allowed, turnOf(context, username))
  return { ...noProof, method: 'updb', username, password: hash }
}

/** The certificate, or the user name, that another identity has. */
function conflictOf(err: unknown, { fingerprint }: Proof): Fault | undefined {
  const fault = uniqueFault(authenticator, err)
  return fault && fieldOf(fault) === 'fingerprint'
    ? new Fault('CERT_IN_USE', undefined, err, { fingerprint })
    : fault
}
