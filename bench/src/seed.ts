import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { type Api, clientRoot, forEach, openApi } from './api.js'
import { keyAndRequest } from './certificate-request.js'
import { allAttribute, attributes, names, password, roles, type Topology } from './topology.js'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

/** The data of a seeded controller that scenarios need. */
export interface Seeded {
  readonly topology: Topology
  readonly certificates: readonly Certificate[]
  /** Further identities, which only the database knows. */
  readonly rows: number
}

const atOnce = 8

/** Fills a controller through its API, or reads the file of an earlier seeding. */
export async function seed(
  url: string,
  admin: Api,
  topology: Topology,
  file: string | undefined,
  print: (line: string) => void,
): Promise<Seeded> {
  if (file && existsSync(file)) return JSON.parse(await readFile(file, 'utf8')) as Seeded
  const phase = async <T>(name: string, count: number, work: (at: number) => Promise<T>): Promise<T[]> => {
    const started = performance.now()
    const results = await forEach(count, atOnce, work)
    print(`${count} ${name} in ${((performance.now() - started) / 1000).toFixed(1)} s`)
    return results
  }
  const create = async (kind: string, body: object): Promise<string> =>
    (await admin.request<{ id: string }>('POST', `/${kind}`, body)).id

  const configs = await seedConfigs(admin, topology, phase, create)
  await phase('routers', topology.routers, (at) =>
    create('edge-routers', {
      name: names.router(at),
      roleAttributes: [allAttribute],
      isTunnelerEnabled: false,
    }),
  )
  await phase('services', topology.services, (at) =>
    create(
      'services',
      newService(names.service(at), attributes.service(at, topology), configs.slice(2 * at, 2 * at + 2)),
    ),
  )
  const all = [`#${allAttribute}`]
  const policy = { name: 'bench-all', semantic: 'AnyOf', edgeRouterRoles: all }
  await create('edge-router-policies', { ...policy, identityRoles: all })
  await create('service-edge-router-policies', { ...policy, serviceRoles: all })
  await phase('service policies', topology.policies, (at) =>
    create('service-policies', newPolicy(names.policy(at), at, topology)),
  )
  const identities = await phase('identities', topology.identities, (at) =>
    create('identities', newIdentity(names.identity(at), at, topology)),
  )
  await phase('passwords', topology.withPassword, (at) =>
    create('authenticators', {
      method: 'updb',
      identityId: identities[at],
      username: names.username(at),
      password,
    }),
  )
  using anonymous = openApi(url, clientRoot, atOnce)
  const certificates = await phase('certificates', topology.withCertificate, async (at) => {
    const identityId = identities[topology.identities - 1 - at] ?? ''
    await create('enrollments', { method: 'ott', identityId, expiresAt: inAnHour() })
    return enroll(anonymous, await tokenOf(admin, identityId))
  })
  const seeded = { topology, certificates, rows: 0 }
  if (file) await writeFile(file, JSON.stringify(seeded), { mode: 0o600 })
  return seeded
}

export const newIdentity = (name: string, at: number, topology: Topology) => ({
  name,
  type: 'Device',
  isAdmin: false,
  roleAttributes: attributes.identity(at, topology),
})

export const newService = (name: string, roleAttributes: readonly string[], configs: readonly string[]) => ({
  name,
  encryptionRequired: true,
  roleAttributes,
  configs,
  terminatorStrategy: 'smartrouting',
})

export const newPolicy = (name: string, at: number, topology: Topology) => ({
  name,
  type: 'Dial',
  semantic: 'AnyOf',
  identityRoles: roles.identities(at, topology),
  serviceRoles: roles.services(at),
  postureCheckRoles: [],
})

export const configData = { host: { protocol: 'tcp', address: '10.0.0.1', port: 443 } }

/** The token of the identity's open enrollment. */
export async function tokenOf(admin: Api, identityId: string): Promise<string> {
  const { enrollment } = await admin.request<{ enrollment: { ott: { token: string } } }>(
    'GET',
    `/identities/${identityId}`,
  )
  return enrollment.ott.token
}

async function enroll(anonymous: Api, token: string): Promise<Certificate> {
  const { csr, key } = await keyAndRequest()
  const { cert } = await anonymous.request<{ cert: string }>('POST', `/enroll?method=ott&token=${token}`, csr)
  return { key, cert }
}

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString()

/** Two configs for each service: one for clients, one for hosts. */
async function seedConfigs(
  admin: Api,
  { services }: Topology,
  phase: (name: string, count: number, work: (at: number) => Promise<string>) => Promise<string[]>,
  create: (kind: string, body: object) => Promise<string>,
): Promise<string[]> {
  const typeOf = async (name: string): Promise<string> => {
    const filter = encodeURIComponent(`name="${name}"`)
    const [type] = await admin.request<{ id: string }[]>('GET', `/config-types?filter=${filter}`)
    if (!type) throw new Error(`there is no config type ${name}`)
    return type.id
  }
  const [intercept, host] = [await typeOf('intercept.v1'), await typeOf('host.v1')]
  return phase('configs', 2 * services, (at) => {
    const name = names.service(Math.floor(at / 2))
    return at % 2 === 0
      ? create('configs', {
          name: `${name}-intercept`,
          configTypeId: intercept,
          data: {
            protocols: ['tcp'],
            addresses: [`${name}.bench.internal`],
            portRanges: [{ low: 443, high: 443 }],
          },
        })
      : create('configs', {
          name: `${name}-host`,
          configTypeId: host,
          data: configData.host,
        })
  })
}
