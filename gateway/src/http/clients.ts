/** The clients of OpenID Connect, for which access tokens are issued. They have no secrets. wire: SDKs use the first one. */
export const CLIENTS: ReadonlySet<string> = new Set(['native', 'openziti'])
