/** Names that the certificate of the servers must have. `advertised`: the hosts that clients and routers connect to. */
export const serverHosts = (advertised: readonly string[]): readonly string[] => [
  ...new Set(['localhost', '127.0.0.1', '::1', ...advertised].map((host) => host.toLowerCase())),
]
