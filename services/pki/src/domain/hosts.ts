/** Names that a gateway's certificate must have, `advertised` being the host that clients are told. */
export const servedHosts = (advertised: string, more: readonly string[] = []): readonly string[] => [
  ...new Set(['localhost', '127.0.0.1', '::1', advertised, ...more].map((host) => host.toLowerCase())),
]
