import type { Following } from '@overlay/platform'
import type { Context, EnrollRequest, EnrollResponse, Methods, PkiServiceService } from '@overlay/rpc'
import type { Keyring } from '../store/keyring.js'
import { type Creating, check, refresh, store } from './create-enrollment.js'

export interface Serving extends Creating {
  keyring(): Promise<Keyring>
  /** By schema: whose changes have effects here. */
  readonly followed: Readonly<Record<string, Pick<Following, 'reach'>>>
  enroll(request: EnrollRequest, context: Context): Promise<EnrollResponse>
}

export const pkiService = (serving: Serving): Methods<PkiServiceService> => ({
  async getServerCertificate() {
    const { server, intermediates } = await serving.keyring()
    return { keyPem: server.privateKey, chainPem: server.pem + intermediates, fingerprint: server.keyId }
  },

  async getTrustBundle() {
    const { bundle, trustDomain, bundleId } = await serving.keyring()
    return { pems: [...bundle], trustDomain, keyId: bundleId }
  },

  async checkEnrollment(wish) {
    await check(serving, wish)
    return {}
  },

  createEnrollment: (wish, context) => store(serving, wish, context),

  refreshEnrollment: ({ id, expiresAtMs }, context) => refresh(serving, id, expiresAtMs, context),

  async reach({ schema, position }, { signal }) {
    const following = serving.followed[schema]
    if (!following) throw new Error(`schema '${schema}' is not followed here`)
    if (position) await following.reach(position, signal)
    return {}
  },

  enroll: (request, context) => serving.enroll(request, context),
})
