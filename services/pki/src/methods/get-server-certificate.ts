import type { Deps, PkiMethods } from './deps.js'

/** The key and the certificate that gateways serve. */
export const getServerCertificate =
  ({ keyring }: Deps): PkiMethods['getServerCertificate'] =>
  async () => {
    const { server } = await keyring()
    return { keyPem: server.privateKey, chainPem: server.pem + server.chain, fingerprint: server.keyId }
  }
