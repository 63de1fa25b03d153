import type { Deps, PkiMethods } from './deps.js'

/** The authorities of the network. */
export const getTrustBundle =
  ({ keyring }: Deps): PkiMethods['getTrustBundle'] =>
  async () => {
    const { bundle, trustDomain, bundleId } = await keyring()
    return { pems: [...bundle], trustDomain, keyId: bundleId }
  }
