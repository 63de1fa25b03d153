import { Fault } from '@overlay/rpc'
import { type Csr, CsrError, readCsr } from '../domain/csr.js'
import { hostClaims, issueRouterCertificates as issue, reserveHosts } from '../enroll/router-certificates.js'
import type { Deps, PkiMethods } from './deps.js'

/** Another pair of certificates for a router that has one. */
export const issueRouterCertificates =
  ({ keyring, queue, routerNaming, owners }: Deps): PkiMethods['issueRouterCertificates'] =>
  async ({ routerId, routerName, csrPem, serverCsrPem }, context) => {
    const requests = await queue(async () => {
      const client = await parse(csrPem)
      if (client.commonName !== routerId)
        throw new Fault('COULD_NOT_PROCESS_CSR', { fault: 'EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID' })
      return { routerId, name: routerName, client, server: await parse(serverCsrPem) }
    }, context.signal)
    const keys = await keyring()
    const refused = await reserveHosts(keys, routerNaming, requests, hostClaims(owners.sessions, context))
    const leaves = await queue(() => issue(keys, routerNaming, requests, refused), context.signal)
    return { ...leaves, intermediatesPem: keys.intermediates, caPem: keys.caPem }
  }

/** wire: the cause repeats the fault. */
async function parse(pem: string): Promise<Csr> {
  try {
    return await readCsr(pem)
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    throw new Fault('COULD_NOT_PROCESS_CSR', { fault: 'COULD_NOT_PROCESS_CSR' }, err)
  }
}
