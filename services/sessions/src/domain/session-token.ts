/** A session, as its token describes it. */
export interface SessionFacts {
  readonly id: string
  readonly apiSessionId: string
  readonly identityId: string
  readonly serviceId: string
  readonly type: 'Dial' | 'Bind'
}

/** What a signed token says, after its signature is verified. */
export interface SessionToken extends SessionFacts {
  readonly issuedAtMs: number
  readonly expiresAtMs: number
}

/** wire: routers tell signed tokens from UUIDs by this prefix. */
export const isSigned = (token: string): boolean => token.startsWith('ey')

/** wire: the names of the claims, and `aud`, which routers do not read. */
export const claimsOf = (
  { id, apiSessionId, identityId, serviceId, type }: SessionFacts,
  issuer: string,
  issuedAtMs: number,
  lifeMs: number,
): object => ({
  iss: issuer,
  sub: serviceId,
  aud: ['openziti'],
  iat: Math.floor(issuedAtMs / 1000),
  exp: Math.floor((issuedAtMs + lifeMs) / 1000),
  jti: id,
  z_asid: apiSessionId,
  z_iid: identityId,
  z_t: 's',
  z_st: type,
  // wire: only then routers close what the session carries as soon as it ends. It says nothing about access: routers
  // look at the token of the API session for that. Every session of this network is stored, so it holds for all of them
  z_leg: true,
})

/** Undefined: these are not the claims of a session's token. */
export function tokenIn(claims: Readonly<Record<string, unknown>>): SessionToken | undefined {
  const { sub, iat, exp, jti, z_asid, z_iid, z_t, z_st } = claims
  if (
    z_t !== 's' ||
    typeof iat !== 'number' ||
    typeof exp !== 'number' ||
    (z_st !== 'Dial' && z_st !== 'Bind')
  )
    return undefined
  if (typeof sub !== 'string' || typeof jti !== 'string') return undefined
  if (typeof z_asid !== 'string' || typeof z_iid !== 'string') return undefined
  const facts = { id: jti, apiSessionId: z_asid, identityId: z_iid, serviceId: sub, type: z_st } as const
  return { ...facts, issuedAtMs: iat * 1000, expiresAtMs: exp * 1000 }
}

/** The token is about this session. */
export const isAbout = (token: SessionFacts, session: SessionFacts): boolean =>
  token.id === session.id &&
  token.apiSessionId === session.apiSessionId &&
  token.identityId === session.identityId &&
  token.serviceId === session.serviceId &&
  token.type === session.type
