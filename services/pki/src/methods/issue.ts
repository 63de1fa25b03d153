import type { Queue } from '@overlay/platform/async'
import { Fault, type IssuedCertificate, type Methods, type PkiServiceService } from '@overlay/rpc'
import { uriName } from '../domain/alt-names.js'
import { issueLeaf } from '../domain/certificate.js'
import type { Csr } from '../domain/csr.js'
import { forHours, forYears, isIssuedBy, type Validity } from '../domain/signer.js'
import { csrOf } from '../enroll/method.js'
import type { Keyring } from '../keys/keyring.js'

type Issue = Pick<Methods<PkiServiceService>, 'extendCertificate' | 'issueSessionCertificate'>

export interface Issuing {
  keyring(): Promise<Keyring>
  /** For checking and signing, which take milliseconds of a core. */
  readonly queued: Queue
  readonly now: () => Date
}

const sessionCertificateHours = 12

/** Certificates for who is known already. */
export function issue({ keyring, queued, now }: Issuing): Issue {
  const issued = async (
    csrPem: string,
    altNames: Csr['altNames'],
    validity: Validity,
  ): Promise<IssuedCertificate> => {
    const { signer, intermediates, caPem } = await keyring()
    const certPem = await issueLeaf(signer, { ...(await csrOf(csrPem)), altNames, role: 'client', validity })
    return { certPem, chainPem: certPem + intermediates, caPem }
  }
  return {
    extendCertificate: ({ certPem, csrPem }, { signal }) =>
      queued(async () => {
        const { signing } = await keyring()
        if (!isIssuedBy(certPem, signing))
          throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR', 'the certificate is not of the current authority')
        // differs: no names are carried over, as identities have none
        return issued(csrPem, [], forYears(1, now()))
      }, signal),

    issueSessionCertificate: ({ id, identityId, apiSessionId, csrPem }, { signal }) =>
      queued(async () => {
        const { trustDomain } = await keyring()
        const path = `identity/${identityId}/apiSession/${apiSessionId}/apiSessionCertificate/${id}`
        return issued(
          csrPem,
          [uriName(`spiffe://${trustDomain}/${path}`)],
          forHours(sessionCertificateHours, now()),
        )
      }, signal),
  }
}
