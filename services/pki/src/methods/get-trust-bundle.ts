import type { Deps, PkiMethods } from './deps.js'

/** The authorities of the network. */
export const getTrustBundle =
  ({ reachKeys, keyring }: Deps): PkiMethods['getTrustBundle'] =>
  async (_request, context) => {
    await reachKeys(context)
    const { bundle, trustDomain, bundleId } = await keyring()
    return { pems: [...bundle], trustDomain, keyId: bundleId }
  }
