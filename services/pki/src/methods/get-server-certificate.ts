import type { Deps, PkiMethods } from './deps.js'

/** The key and the certificate that gateways serve. */
export const getServerCertificate =
  ({ reachKeys, keyring }: Deps): PkiMethods['getServerCertificate'] =>
  async (_request, context) => {
    await reachKeys(context)
    const { server } = await keyring()
    return { keyPem: server.privateKey, chainPem: server.pem + server.chain, fingerprint: server.keyId }
  }
