import type { edgeErrorCode } from '@overlay/channel'

/** The access that a router claims for one of its clients. */
export interface AccessClaim {
  readonly routerId: string
  readonly sessionToken: string
  /** Empty: the API session of the session. */
  readonly apiSessionToken: string
  /** SHA-1 of the certificates that the client presented to the router, hex. */
  readonly fingerprints: readonly string[]
  readonly type: 'Dial' | 'Bind'
  /** Called before expensive checks, with their cost in units of the router's work budget. */
  readonly spend?: ((units: number) => void) | undefined
}

/** What a router claims for a client that dials without a session. */
export interface DialClaim extends Pick<AccessClaim, 'routerId' | 'fingerprints'> {
  readonly accessToken: string
  readonly identityId: string
  readonly serviceId: string
}

/** A session whose API session, certificate, service and router are verified. */
export interface GrantedAccess {
  readonly sessionId: string
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
}

/** A claim that is refused. Routers forward the text to their clients. */
export class AccessRefused extends Error {
  override readonly name = 'AccessRefused'
  constructor(
    readonly code: (typeof edgeErrorCode)[keyof typeof edgeErrorCode],
    message: string,
    /** The circuit whose set-up has failed. */
    readonly circuitId?: string | undefined,
  ) {
    super(message)
  }
}

/** Verifies claims of routers. Throws AccessRefused. */
export type CheckAccess = (claim: AccessClaim) => Promise<GrantedAccess>

/** The same without a session: one is found or created. */
export type CheckDial = (claim: DialClaim) => Promise<GrantedAccess>

/** Throws AccessRefused unless policies let the identity use the service through the router. */
export type CheckRouter = (routerId: string, identityId: string, serviceId: string) => Promise<void>
