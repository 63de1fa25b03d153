/** The number of entities of each kind. */
export interface Topology {
  readonly identities: number
  readonly services: number
  readonly policies: number
  readonly routers: number
  readonly withPassword: number
  readonly withCertificate: number
}

export function topologyOf(scale: number): Topology {
  const of = (count: number): number => Math.max(1, Math.round(count * scale))
  return {
    identities: of(1000),
    services: of(100),
    policies: of(50),
    routers: of(5),
    withPassword: Math.min(of(1000), 2000),
    withCertificate: Math.min(of(300), 500),
  }
}

const servicesOfIdentity = 50

/** The number of groups with which each identity sees 50 services at any scale. */
const groupsOf = ({ services, policies }: Topology): number =>
  Math.min(policies, Math.max(1, Math.round(services / servicesOfIdentity)))

const padded = (value: number): string => String(value).padStart(7, '0')

export const names = {
  identity: (i: number) => `bench-identity-${padded(i)}`,
  username: (i: number) => `bench-user-${padded(i)}`,
  service: (i: number) => `bench-service-${padded(i)}`,
  router: (i: number) => `bench-router-${padded(i)}`,
  policy: (i: number) => `bench-policy-${padded(i)}`,
}

export const password = 'bench-Passw0rd'
export const allAttribute = 'bench-all'

export const attributes = {
  identity: (i: number, topology: Topology) => [allAttribute, `bench-group-${i % groupsOf(topology)}`],
  service: (i: number, { policies }: Topology) => [allAttribute, `bench-services-${i % policies}`],
}

export const roles = {
  identities: (policy: number, topology: Topology) => [`#bench-group-${policy % groupsOf(topology)}`],
  services: (policy: number) => [`#bench-services-${policy}`],
}
