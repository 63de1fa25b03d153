import { Fault, type Methods, type PkiServiceService } from '@overlay/rpc'
import { forHours, forYears, isIssuedBy, uriName } from '@overlay/x509'
import { issueClientCertificate, parseCsr } from '../enroll/client-certificate.js'
import { hostClaims, issueRouterCertificates, reserveHosts } from '../enroll/router-certificates.js'
import { SESSION_CERTIFICATE_HOURS } from '../limits.js'
import type { MethodDeps } from './method-deps.js'

type CertificateDeps = Pick<MethodDeps, 'keyring' | 'now' | 'owners' | 'queue' | 'reachKeys' | 'routerNaming'>

/** The certificates of the network, and those that it issues to members. */
export const certificateMethods = (deps: CertificateDeps) => {
  const { keyring, now, owners, queue, reachKeys, routerNaming } = deps
  return {
    /** The authorities of the network. */
    async getTrustBundle(_request, context) {
      await reachKeys(context)
      const { bundle, trustDomain, bundleId } = await keyring()
      return { pems: [...bundle], trustDomain, keyId: bundleId }
    },

    /** The key and the certificate that gateways serve. */
    async getServerCertificate(_request, context) {
      await reachKeys(context)
      const { server } = await keyring()
      return { keyPem: server.privateKey, chainPem: server.pem + server.chain, fingerprint: server.keyId }
    },

    /** Another certificate for a client that has one of the network. */
    extendCertificate: ({ certPem, csrPem }, { signal }) =>
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
      }, signal),

    /** A certificate that stands for one API session. */
    issueSessionCertificate: ({ id, identityId, apiSessionId, csrPem }, { signal }) =>
      queue(async () => {
        const keys = await keyring()
        const path = `identity/${identityId}/apiSession/${apiSessionId}/apiSessionCertificate/${id}`
        const altNames = [uriName(`spiffe://${keys.trustDomain}/${path}`)]
        const validity = forHours(SESSION_CERTIFICATE_HOURS, now())
        return issueClientCertificate(keys, await parseCsr(csrPem), validity, altNames)
      }, signal),

    /** Another pair of certificates for a router that has one. */
    async issueRouterCertificates({ routerId, routerName, csrPem, serverCsrPem }, context) {
      const detail = { fault: 'COULD_NOT_PROCESS_CSR' } as const // wire: the cause repeats the fault
      const requests = await queue(async () => {
        const client = await parseCsr(csrPem, detail)
        if (client.commonName !== routerId)
          throw new Fault('COULD_NOT_PROCESS_CSR', { fault: 'EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID' })
        return { routerId, name: routerName, client, server: await parseCsr(serverCsrPem, detail) }
      }, context.signal)
      const keys = await keyring()
      const claimHosts = hostClaims(owners.sessions, context)
      const refused = await reserveHosts(keys, routerNaming, requests, claimHosts)
      const leaves = await queue(
        () => issueRouterCertificates(keys, routerNaming, requests, refused),
        context.signal,
      )
      return { ...leaves, intermediatesPem: keys.intermediates, caPem: keys.caPem }
    },
  } satisfies Partial<Methods<PkiServiceService>>
}
