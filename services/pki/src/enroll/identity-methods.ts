import type { Db } from '@overlay/platform/postgres'
import { Fault, invalid } from '@overlay/rpc'
import { issueLeaf } from '../domain/certificate.js'
import { forYears } from '../domain/signer.js'
import { findCa } from '../store/cas.js'
import { type Admitted, csrOf, hashOf, type Method, nothingIssued, type Owners } from './method.js'

type Added = Awaited<ReturnType<Owners['identity']['addAuthenticator']>>

const admitted = ({ created, position }: Added): Admitted => ({ isFirst: created, position })

const nobody = {
  certPem: '',
  isIssuedByNetwork: false,
  username: '',
  password: '',
  caId: '',
  peerCertificates: [],
}

/** A certificate for the key of the request. */
export const ott =
  ({ identity }: Owners): Method =>
  async ({ csrPem = '' }, { id, identityId }) => {
    const csr = await csrOf(csrPem)
    return {
      hash: hashOf(csr.publicKey),
      async issue({ signer, intermediates, caPem }) {
        // wire: the names that the request asks for are not for identities
        const certPem = await issueLeaf(signer, {
          ...csr,
          altNames: [],
          role: 'client',
          validity: forYears(1, new Date()),
        })
        return { ...nothingIssued, certPem, chainPem: certPem + intermediates, caPem }
      },
      async admit({ certPem }, context) {
        const redeemed = { identityId: identityId ?? '', enrollmentId: id, certPem, isIssuedByNetwork: true }
        return admitted(await identity.addAuthenticator({ ...nobody, ...redeemed }, context))
      },
    }
  }

/** A password for the user name that was chosen with the enrollment. */
export const updb =
  ({ identity }: Owners): Method =>
  async ({ password }, { id, identityId, username }) => {
    // differs: a password of the wrong length is refused here, not at every later login
    if (password === undefined) throw invalid('password', 'password is required')
    if (password.length < 5) throw invalid('password', 'password must have at least 5 characters')
    if (password.length > 100) throw invalid('password', 'password must have at most 100 characters')
    return {
      hash: hashOf(username ?? ''),
      issue: async () => nothingIssued,
      async admit(_, context) {
        const redeemed = {
          identityId: identityId ?? '',
          enrollmentId: id,
          username: username ?? '',
          password,
        }
        return admitted(await identity.addAuthenticator({ ...nobody, ...redeemed }, context))
      },
    }
  }

/** A certificate of somebody else's authority, shown on the connection. identity sees whether it is one. */
export const ottca =
  ({ identity }: Owners, db: Db): Method =>
  async ({ peerCertificates }, { id, identityId, caId }) => {
    const ca = caId === null ? undefined : await findCa(db, caId)
    if (!ca) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    // differs: an authority that nobody has verified is refused
    if (!ca.isOttCaEnrollmentEnabled || !ca.isVerified) throw new Fault('ENROLLMENT_CA_NOT_VALID')
    const [leaf] = peerCertificates
    if (!leaf) throw new Fault('CERT_FAILED_VALIDATION')
    return {
      hash: hashOf(leaf),
      issue: async () => nothingIssued,
      async admit(_, context) {
        const redeemed = { identityId: identityId ?? '', enrollmentId: id, caId: ca.id, peerCertificates }
        return admitted(await identity.addAuthenticator({ ...nobody, ...redeemed }, context))
      },
    }
  }
