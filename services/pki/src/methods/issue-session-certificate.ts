import { forHours, uriName } from '@overlay/x509'
import { parseCsr } from '../enroll/parse-csr.js'
import { issueClientCertificate } from '../keys/client-certificate.js'
import { SESSION_CERTIFICATE_HOURS } from '../limits.js'
import type { Deps, PkiMethods } from './deps.js'

/** A certificate that stands for one API session. */
export const issueSessionCertificate =
  ({ keyring, queue, now }: Deps): PkiMethods['issueSessionCertificate'] =>
  ({ id, identityId, apiSessionId, csrPem }, { signal }) =>
    queue(async () => {
      const keys = await keyring()
      const path = `identity/${identityId}/apiSession/${apiSessionId}/apiSessionCertificate/${id}`
      const altNames = [uriName(`spiffe://${keys.trustDomain}/${path}`)]
      return issueClientCertificate(
        keys,
        await parseCsr(csrPem),
        forHours(SESSION_CERTIFICATE_HOURS, now()),
        altNames,
      )
    }, signal)
