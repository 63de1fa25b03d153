import type { Deps, PkiMethods } from './deps.js'

/** The key and the certificate that gateways serve. */
export const getServerCertificate =
  ({ keyring }: Deps): PkiMethods['getServerCertificate'] =>
  async () => {
    const { server, intermediates } = await keyring()
    return { keyPem: server.privateKey, chainPem: server.pem + intermediates, fingerprint: server.keyId }
  }
