import { randomUUID } from 'node:crypto'
import { type Methods, type OidcServiceService, sourceOf } from '@overlay/rpc'
import { fingerprintOf } from '@overlay/x509'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { insertLogin } from '../store/oidc-logins.js'

export const startLogin =
  ({ changeLog }: OidcDeps): Methods<OidcServiceService>['startLogin'] =>
  async ({ peerCertificates, ...request }, { sourceAddress }) => {
    const id = randomUUID()
    const fingerprints = peerCertificates.map((raw) => fingerprintOf({ raw: Buffer.from(raw) }))
    await insertLogin(changeLog.db, { ...request, id, source: sourceOf(sourceAddress), fingerprints })
    return {
      id,
      clientId: request.clientId,
      redirectUri: request.redirectUri,
      state: request.state,
      isIdentified: false,
      isComplete: false,
      needsCode: false,
      needsEnrollment: false,
      needsToken: false,
      authQueries: Buffer.from('[]'),
    }
  }
