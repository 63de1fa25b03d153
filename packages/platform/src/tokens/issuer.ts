/** The issuer of the tokens of OpenID Connect. `address`: of the APIs for clients, as host:port. */
export const issuerOf = (address: string): string => `https://${address}/oidc`
