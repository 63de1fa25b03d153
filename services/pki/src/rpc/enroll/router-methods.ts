import { Fault } from '@overlay/rpc'
import { issueLeaf } from '../../domain/certificate.js'
import type { Csr } from '../../domain/csr.js'
import { subjectOf } from '../../domain/enrollment.js'
import { fingerprintOf, forYears } from '../../domain/signer.js'
import { commonNameOf, withCommonName } from '../../domain/subject.js'
import { csrOf, hashOf, type Method, type Owners } from './offer.js'

const server = 'invalid server CSR'
const client = 'invalid client CSR'

/** Two certificates, usually for one key. `named` answers the client's request, with the name of the router. */
const routerMethod =
  (named: (csr: Csr, routerId: string) => Csr) =>
  ({ sessions }: Owners): Method =>
  async ({ csrPem, serverCsrPem }, enrollment) => {
    const routerId = subjectOf(enrollment)
    if (serverCsrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', server)
    if (csrPem === undefined) throw new Fault('MISSING_OR_INVALID_CSR', client)
    const serverCsr = await csrOf(serverCsrPem, server)
    const clientCsr = named(await csrOf(csrPem, client), routerId)
    return {
      hash: hashOf(Buffer.concat([clientCsr.publicKey, serverCsr.publicKey])),
      async issue({ signer, intermediates, caPem }) {
        const validity = forYears(1, new Date())
        const certPem = await issueLeaf(signer, { ...clientCsr, role: 'client', validity })
        const serverCertPem = await issueLeaf(signer, { ...serverCsr, role: 'server', validity })
        return {
          certPem,
          chainPem: certPem + intermediates,
          serverChainPem: serverCertPem + intermediates,
          caPem,
        }
      },
      async admit({ certPem }, context) {
        const fingerprint = fingerprintOf(certPem)
        const admitted = { routerId, enrollmentId: enrollment.id, certPem, fingerprint }
        const { position } = await sessions.admitRouter(admitted, context)
        return { isFirst: true, position }
      },
    }
  }

export const erott = routerMethod((csr, routerId) => {
  if (commonNameOf(csr.subject) !== routerId) throw new Fault('COULD_NOT_PROCESS_CSR', client)
  return csr
})

export const trott = routerMethod((csr, routerId) => ({
  ...csr,
  subject: withCommonName(csr.subject, routerId),
}))
