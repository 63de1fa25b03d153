import { clientRoot, forEach, managementRoot, openApi, RefusedError } from './api.js'
import type { Load } from './load.js'
import { type Bench, get, once, post, type Scenario } from './scenario.js'
import { configData, newPolicy, newService } from './seed.js'
import { names } from './topology.js'

const readEntities = 100
const policiesOfRound = 240

/** Reads and writes of single entities by administrators, and a session that exists already. */
export const crudScenarios: readonly Scenario[] = [
  { name: 'session-again', prepare: once(openSessions) },
  { name: 'get-identity', prepare: once(entities('identities', names.identity)) },
  { name: 'get-service', prepare: once(entities('services', names.service)) },
  {
    name: 'get-config',
    prepare: once(entities('configs', (at) => `${names.service(at)}-host`)),
  },
  { name: 'create-config', prepare: newConfigs },
  { name: 'patch-config', prepare: once(patches) },
  { name: 'create-service', prepare: newServices },
]

export const createPolicy: Scenario = { name: 'create-policy', prepare: newPolicies }

/** A session of each identity, which is created before the measurement. */
async function openSessions({ url, tokens }: Bench): Promise<Load> {
  const all = await tokens()
  const requests = await forEach(all.length, 4, async (at) => {
    using api = openApi(url, clientRoot, 1)
    const token = all[at] ?? ''
    api.use(token)
    const services = await api.request<{ id: string }[]>('GET', '/services?limit=100')
    const body = { serviceId: services.at(-1)?.id ?? '', type: 'Dial' }
    await api.request('POST', '/sessions', body)
    return post(`${clientRoot}/sessions`, body, token)
  })
  return { requests }
}

function entities(kind: string, nameAt: (at: number) => string): (bench: Bench) => Promise<Load> {
  return async ({ admin, adminToken, seeded: { topology } }) => {
    const count = kind === 'identities' ? topology.identities : topology.services
    const requests = await forEach(Math.min(readEntities, count), 4, async (at) => {
      const name = nameAt(Math.floor((at * count) / Math.min(readEntities, count)))
      const path = `/${kind}?filter=${encodeURIComponent(`name="${name}"`)}`
      const [entity] = await admin.request<{ id: string }[]>('GET', path)
      return get(`${managementRoot}/${kind}/${entity?.id}`, adminToken)
    })
    return { requests }
  }
}

/** Requests with the number of each, which differs in all rounds. */
function numbered({ adminToken }: Bench, kind: string, body: (round: string, at: number) => object): Load {
  const round = Date.now().toString(36)
  let count = 0
  return {
    next() {
      count += 1
      return post(`${managementRoot}/${kind}`, body(round, count), adminToken)
    },
  }
}

const typeOfHosts = once(async ({ admin }) => {
  const path = `/config-types?filter=${encodeURIComponent('name="host.v1"')}`
  const [type] = await admin.request<{ id: string }[]>('GET', path)
  return type?.id ?? ''
})

async function newConfigs(bench: Bench): Promise<Load> {
  const configTypeId = await typeOfHosts(bench)
  return numbered(bench, 'configs', (round, at) => ({
    name: `bench-config-${round}-${at}`,
    configTypeId,
    data: configData.host,
  }))
}

async function patches(bench: Bench): Promise<Load> {
  const { requests } = (await entities('configs', (at) => `${names.service(at)}-host`)(bench)) as {
    requests: readonly ReturnType<typeof get>[]
  }
  return {
    requests: requests.map(({ path }) => ({
      ...post(path, { data: configData.host }, bench.adminToken),
      method: 'PATCH' as const,
    })),
  }
}

/** Services that no policy grants to anybody. */
async function newServices(bench: Bench): Promise<Load> {
  const [config] = await bench.admin.request<{ id: string }[]>('GET', '/configs?limit=1')
  return numbered(bench, 'services', (round, at) =>
    newService(`bench-service-${round}-${at}`, ['bench-new'], config ? [config.id] : []),
  )
}

/** Policies like those of the topology. Only some, without those of the round before: each makes later requests dearer. */
async function newPolicies(bench: Bench): Promise<Load> {
  const { topology } = bench.seeded
  await deletePolicies(bench)
  const load = numbered(bench, 'service-policies', (round, at) =>
    newPolicy(`bench-policy-${round}-${at}`, at % topology.policies, topology),
  )
  return { ...load, amount: policiesOfRound } as Load
}

async function deletePolicies({ admin }: Bench): Promise<void> {
  const path = `/service-policies?limit=500&filter=${encodeURIComponent('name contains "bench-policy-"')}`
  const policies = await admin.request<{ id: string }[]>('GET', path)
  await forEach(policies.length, 4, async (at) => {
    try {
      await admin.request('DELETE', `/service-policies/${policies[at]?.id}`)
    } catch (err) {
      // the original may carry out a request that it has refused as too late
      if (!(err instanceof RefusedError && err.status === 404)) throw err
    }
  })
}
