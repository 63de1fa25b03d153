import { Fault } from '@overlay/rpc'
import { forYears, isIssuedBy } from '@overlay/x509'
import { parseCsr } from '../enroll/parse-csr.js'
import { issueClientCertificate } from '../keys/client-certificate.js'
import type { Deps, PkiMethods } from './deps.js'

/** Another certificate for a client that has one of the network. */
export const extendCertificate =
  ({ keyring, queue, now }: Deps): PkiMethods['extendCertificate'] =>
  ({ certPem, csrPem }, { signal }) =>
    queue(async () => {
      const keys = await keyring()
      // differs: also one of a former authority, which the original refuses
      if (!keys.authorities.some((authority) => isIssuedBy(certPem, authority)))
        throw new Fault(
          'CAN_NOT_UPDATE_AUTHENTICATOR',
          'the certificate is not of an authority of the network',
        )
      // differs: no names are carried over, as identities have none
      return issueClientCertificate(keys, await parseCsr(csrPem), forYears(1, now()))
    }, signal)
