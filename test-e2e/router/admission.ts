import { X509Certificate } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { fingerprintOf, pemBlocksIn } from '@overlay/x509'
import type { ApiSessions } from './api-sessions.js'
import type { Controller, Controllers } from './controllers.js'
import type { Line } from './lines.js'
import { type Access, isGranted, isRevoked, type Posture } from './model-access.js'
import type { RouterModel } from './router-model.js'
import { type Claims, claimsOf, isSigned, leadsToAuthority } from './tokens.js'

/** The API session of an SDK, with the certificates that it presented. */
export interface SdkAccess {
  readonly apiSessionToken: string
  readonly apiSessionId: string
  readonly identityId: string
  readonly fingerprints: readonly string[]
  /** Of an access token that the router has verified. */
  readonly claims?: Claims
  /** What the SDK has reported, if the router evaluates posture checks of this API session. */
  readonly posture?: Posture
}

/** What a session token says to the router. */
export interface SdkSession {
  readonly token: string
  /** Unknown to routers before 2.0. */
  readonly serviceId?: string
  /** By which a controller removes it; undefined: it cannot. */
  readonly key?: string
}

/** Who may use the router. */
export interface Admission {
  /** Verifies the token of a hello. Throws. */
  admit(token: string, chain: readonly X509Certificate[]): Promise<SdkAccess>
  /** Verifies a later token of the same API session. Throws. */
  renew(access: SdkAccess, token: string): SdkAccess
  /** Takes what an SDK reports of its endpoint. */
  report(access: SdkAccess, posture: Posture & { readonly totpToken?: string }): SdkAccess
  /** Verifies a session token. Throws. */
  session(access: SdkAccess, token: string, use: Access): SdkSession
  /** Whether the model grants the service; true if it does not have to. */
  isGranted(access: SdkAccess, session: SdkSession, use: Access): boolean
  /** Whether the channel of the SDK must close. */
  isEnded(access: SdkAccess): boolean
  /** The controller that decides for this API session. */
  controllerOf(access: SdkAccess): Controller | undefined
  /** The token of the API session that goes with a session to the controller, empty if none does. */
  sentTokenOf(access: SdkAccess, session: Pick<SdkSession, 'token'>): string
}

export interface AdmissionOptions {
  readonly line: Line
  readonly caPem: string
  readonly apiSessions: ApiSessions
  readonly model: RouterModel
  readonly controllers: Controllers
}

const API_SESSION_MS = 5000
const LOOK_MS = 20

export function openAdmission({ line, caPem, apiSessions, model, controllers }: AdmissionOptions): Admission {
  const ownAuthorities = [...pemBlocksIn(caPem)].map(({ text }) => new X509Certificate(text))

  async function verified(
    token: string,
  ): Promise<Omit<SdkAccess, 'fingerprints'> & { known: readonly string[] }> {
    if (!model.isOn || !isSigned(token)) {
      const session = await apiSessions.waitFor(token, API_SESSION_MS)
      if (!session) throw new Error('no API session')
      const { id: apiSessionId, identityId, certFingerprints: known } = session
      return { apiSessionToken: token, apiSessionId, identityId, known }
    }
    for (const deadline = performance.now() + API_SESSION_MS; ; await pause(LOOK_MS)) {
      try {
        const claims = claimsOf(token, 'a', model.contents)
        const { z_asid: apiSessionId, sub: identityId, z_cfs } = claims
        return { apiSessionToken: token, apiSessionId, identityId, claims, posture: {}, known: z_cfs ?? [] }
      } catch (err) {
        if (performance.now() > deadline) throw err
      }
    }
  }

  function isGrantedTo(access: SdkAccess, { serviceId }: SdkSession, use: Access): boolean {
    if (serviceId === undefined) return true
    return isGranted(model.contents, access.identityId, serviceId, use, access.posture)
  }

  function verifiedSession({ apiSessionId }: SdkAccess, token: string, use: Access): SdkSession {
    if (!isSigned(token)) {
      if (use === 'bind' || !model.contents.service.has(token)) throw new Error('not a session token')
      return { token, serviceId: token }
    }
    const { z_asid, z_st, z_leg, sub: serviceId, jti } = claimsOf(token, 's', model.contents)
    if (z_asid !== apiSessionId) throw new Error('the session is of another API session')
    if (use === 'bind' && z_st !== 'Bind') throw new Error(`a bind with a session to ${z_st}`)
    return { token, serviceId, ...(z_leg && { key: jti }) }
  }

  return {
    async admit(token, chain) {
      const [leaf] = chain
      if (!leaf) throw new Error('no client certificate')
      const { known, ...access } = await verified(token)
      const path = [...chain, ...ownAuthorities]
      const isIssued = leadsToAuthority(path, model.contents)
      if (line === '2.0' && !isIssued) throw new Error('the certificate leads to no authority of the model')
      const fingerprint = fingerprintOf(leaf)
      if (!known.includes(fingerprint) && !(model.isOn && isIssued && namesOwner(leaf, access)))
        throw new Error('the certificate is not of the API session')
      return { ...access, fingerprints: [fingerprint] }
    },
    renew(access, token) {
      // wire: routers that do not verify tokens themselves keep connections under the first one
      if (!access.claims) throw new Error('tokens are not verified')
      const claims = claimsOf(token, 'a', model.contents)
      if (claims.z_asid !== access.apiSessionId) throw new Error('the token is of another API session')
      return { ...access, apiSessionToken: token, claims }
    },
    report(access, { totpToken, ...posture }) {
      if (!access.posture) return access
      if (totpToken) {
        const claims = claimsOf(totpToken, 't', model.contents)
        if (claims.z_asid !== access.apiSessionId) throw new Error('the token is of another API session')
      }
      return {
        ...access,
        posture: { ...access.posture, ...posture, ...(totpToken && { hasPassedMfa: true }) },
      }
    },
    session(access, token, use) {
      if (line !== '2.0') return { token, ...(!isSigned(token) && { key: token }) }
      const session = verifiedSession(access, token, use)
      // controllers decide about other sessions
      if (access.claims && !isGrantedTo(access, session, use))
        throw new Error(`no access to service, failed ${use} access check`)
      return session
    },
    isGranted: isGrantedTo,
    isEnded: ({ apiSessionId, identityId, claims }) =>
      (claims?.exp !== undefined && claims.exp <= Date.now() / 1000) ||
      isRevoked(model.contents, { apiSessionId, identityId, ...(claims && { issuedAtSeconds: claims.iat }) }),
    controllerOf({ apiSessionToken, claims }) {
      if (line === '1.1' || claims) return controllers.any()
      return controllers.get(apiSessions.sourceOf(apiSessionToken) ?? '')
    },
    sentTokenOf: ({ apiSessionToken }, { token }) =>
      line === '2.0' || isSigned(token) ? apiSessionToken : '',
  }
}

/** Whether the SPIFFE id of a certificate is that of the identity or of the API session. */
function namesOwner(
  { subjectAltName = '' }: X509Certificate,
  { identityId, apiSessionId }: Pick<SdkAccess, 'identityId' | 'apiSessionId'>,
): boolean {
  const [, ofIdentity, ofApiSession] =
    /URI:spiffe:\/\/[^/,]+\/identity\/([^/,]+)(?:\/apiSession\/([^/,]+))?/.exec(subjectAltName) ?? []
  return ofIdentity === identityId && (ofApiSession === undefined || ofApiSession === apiSessionId)
}
