/** How pki signs the tokens of OpenID Connect. wire: the only algorithm that the Go SDK 0.23 accepts. */
export const TOKEN_ALGORITHM = 'RS256'

/** How sessions signs its tokens, with keys of pki. */
export const SESSION_TOKEN_ALGORITHM = 'ES256'

/** The issuer of the tokens of OpenID Connect. `address`: of the APIs for clients, as host:port. */
export const issuerOf = (address: string): string => `https://${address}/oidc`
