import { AddAuthenticatorRequest, type Context, Fault, invalid } from '@overlay/rpc'
import type { Db } from '@overlay/store/postgres'
import { forYears } from '@overlay/x509'
import type { Enrollment } from '../domain/enrollment.js'
import { findCa } from '../store/cas.js'
import { issueClientCertificate, parseCsr } from './client-certificate.js'
import { type EnrollMethod, hashOf, nothingIssued, type Owners, type Registration } from './enroll-method.js'

async function addAuthenticator(
  { identity }: Owners,
  { id, identityId }: Enrollment,
  credential: Partial<AddAuthenticatorRequest>,
  context: Context,
): Promise<Registration> {
  const ids = { identityId: identityId ?? '', enrollmentId: id }
  const request = AddAuthenticatorRequest.fromPartial({ ...ids, ...credential })
  const { created, position } = await identity.addAuthenticator(request, context)
  return { isFirst: created, position }
}

/** A certificate for the key of the request. */
export const ott =
  (owners: Owners, now: () => Date): EnrollMethod =>
  async ({ csrPem = '' }, enrollment) => {
    const csr = await parseCsr(csrPem)
    return {
      // wire: the names that the request asks for are not for identities
      issue: async (keyring) => ({
        ...nothingIssued,
        ...(await issueClientCertificate(keyring, csr, forYears(1, now()))),
      }),
      register: ({ certPem }, context) =>
        addAuthenticator(owners, enrollment, { certPem, isIssuedByNetwork: true }, context),
    }
  }

/** A password for the user name that was chosen with the enrollment. */
export const updb =
  (owners: Owners): EnrollMethod =>
  async ({ password }, enrollment) => {
    // identity refuses passwords that break a rule
    if (password === undefined) throw invalid('password', 'password is required')
    const username = enrollment.username ?? ''
    return {
      hash: hashOf(username),
      issue: async () => nothingIssued,
      register: (_, context) => addAuthenticator(owners, enrollment, { username, password }, context),
    }
  }

/** A certificate of another authority, presented on the connection. identity verifies it. */
export const ottca =
  (owners: Owners, db: Db): EnrollMethod =>
  async ({ peerCertificates }, enrollment) => {
    const ca = enrollment.caId === null ? undefined : await findCa(db, enrollment.caId)
    if (!ca) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    // differs: an authority that is not verified is refused
    if (!ca.isOttCaEnrollmentEnabled || !ca.isVerified) throw new Fault('ENROLLMENT_CA_NOT_VALID')
    const [leaf] = peerCertificates
    if (!leaf) throw new Fault('CERT_FAILED_VALIDATION')
    return {
      hash: hashOf(leaf),
      issue: async () => nothingIssued,
      register: (_, context) =>
        addAuthenticator(owners, enrollment, { caId: ca.id, peerCertificates }, context),
    }
  }
