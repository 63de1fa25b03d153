import { Fault } from '@overlay/rpc'
import { type Csr, CsrError, readCsr } from '../domain/csr.js'
import { hostClaims, issueRouterCertificates as issue } from '../enroll/router-certificates.js'
import type { Deps, PkiMethods } from './deps.js'

/** Another pair of certificates for a router that has one. */
export const issueRouterCertificates =
  ({ keyring, queue, routerNaming, owners }: Deps): PkiMethods['issueRouterCertificates'] =>
  ({ routerId, routerName, csrPem, serverCsrPem }, context) =>
    queue(async () => {
      const client = await parse(csrPem)
      if (client.commonName !== routerId)
        throw new Fault('COULD_NOT_PROCESS_CSR', { fault: 'EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID' })
      const requests = { routerId, name: routerName, client, server: await parse(serverCsrPem) }
      const keys = await keyring()
      const leaves = await issue(keys, routerNaming, requests, hostClaims(owners.sessions, context))
      return { ...leaves, intermediatesPem: keys.intermediates, caPem: keys.caPem }
    }, context.signal)

/** wire: the cause repeats the fault. */
async function parse(pem: string): Promise<Csr> {
  try {
    return await readCsr(pem)
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    throw new Fault('COULD_NOT_PROCESS_CSR', { fault: 'COULD_NOT_PROCESS_CSR' }, err)
  }
}
