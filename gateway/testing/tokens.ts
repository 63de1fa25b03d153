export const ISSUER = 'https://localhost:1280/oidc'

/** Claims of a valid access token. */
export function accessClaims(now: number, more: object = {}): object {
  const seconds = Math.floor(now / 1000)
  return {
    iss: ISSUER,
    aud: ['native'],
    sub: 'i-alice',
    z_asid: 's-alice',
    z_t: 'a',
    iat: seconds,
    nbf: seconds,
    exp: seconds + 1800,
    ...more,
  }
}
