import { type Api, clientRoot, forEach, logIn, managementRoot, openApi } from './api.js'
import { keyAndRequest } from './certificate-request.js'
import { createPolicy, crudScenarios } from './crud-scenarios.js'
import type { Fleet } from './fleet.js'
import type { Load, Request } from './load.js'
import { type Bench, client, eachOnce, get, once, post, type Scenario } from './scenario.js'
import { newIdentity, type Seeded, tokenOf } from './seed.js'
import { signInScenarios } from './sign-in-scenarios.js'
import { names, password } from './topology.js'

const loggedInIdentities = 200
const enrollmentsOfRound = 1500

export function openBench(
  url: string,
  admin: Api,
  adminToken: string,
  seeded: Seeded,
  rounds: number,
  fleet?: Fleet,
): Bench {
  let tokens: Promise<string[]> | undefined
  return {
    url,
    admin,
    adminToken,
    seeded,
    run: Date.now().toString(36),
    rounds,
    tokens() {
      tokens ??= logInMany(url, seeded)
      return tokens
    },
    fleet() {
      if (!fleet) throw new Error('no routers are connected')
      return fleet
    },
  }
}

const asIdentity =
  (path: string): Scenario['prepare'] =>
  async (bench) => ({
    requests: (await bench.tokens()).map((token) => get(`${clientRoot}${path}`, token)),
  })

export const sessionCreate: Scenario = { name: 'session-create', prepare: newSessions() }

export const scenarios: readonly Scenario[] = [
  { name: 'version', prepare: () => ({ requests: [get(`${clientRoot}/version`)] }) },
  {
    name: 'service-updates',
    prepare: asIdentity('/current-api-session/service-updates'),
  },
  { name: 'whoami', prepare: asIdentity('/current-identity') },
  {
    name: 'list-services',
    prepare: asIdentity('/services?limit=100'),
  },
  { name: 'own-edge-routers', prepare: asIdentity('/current-identity/edge-routers') },
  // before the creates, which make them dearer
  { name: 'page-identities', prepare: pages },
  { name: 'identity-by-name', prepare: ofIdentities(({ name }) => `name="${name}"`) },
  {
    name: 'identities-contain',
    prepare: ofIdentities(({ part }) => `name contains "${part}" sort by name desc`),
  },
  sessionCreate,
  ...crudScenarios,
  { name: 'create-identity', prepare: newIdentities('plain', {}) },
  {
    name: 'create-identity-ott',
    prepare: newIdentities('ott', { enrollment: { ott: true } }),
  },
  ...signInScenarios,
  { name: 'enroll-ott', prepare: enrollments },
  { name: 'page-identities-busy', prepare: withSessions(pages) },
  { name: 'create-identity-160', concurrency: 160, prepare: newIdentities('many', {}) },
  createPolicy,
]

async function logInMany(url: string, { topology }: Seeded): Promise<string[]> {
  using anonymous = openApi(url, clientRoot, 4)
  const count = Math.min(loggedInIdentities, topology.withPassword)
  const step = Math.floor(topology.withPassword / count)
  return await forEach(count, 4, (at) =>
    logIn(anonymous, names.username(at * step), password, { ...client, configTypes: ['intercept.v1'] }),
  )
}

/** Each pair of API session and service once: for a second create the session exists. */
function newSessions(): Scenario['prepare'] {
  const pairs = once(async (bench) => {
    const all = await pairsOf(bench)
    return { all, ofRound: Math.floor(all.length / bench.rounds) }
  })
  return async (bench) => {
    const { all, ofRound } = await pairs(bench)
    return eachOnce(all.splice(0, ofRound))
  }
}

async function pairsOf({ url, tokens }: Bench): Promise<Request[]> {
  const of = await forEach((await tokens()).length, 4, async (at) => {
    const token = (await tokens())[at] ?? ''
    using api = openApi(url, clientRoot, 1)
    api.use(token)
    const services = await api.request<{ id: string }[]>('GET', '/services?limit=100')
    return services.map(({ id }) => post(`${clientRoot}/sessions`, { serviceId: id, type: 'Dial' }, token))
  })
  const longest = Math.max(...of.map(({ length }) => length))
  return Array.from({ length: longest }, (_, at) => of.flatMap((pairs) => pairs[at] ?? [])).flat()
}

function newIdentities(kind: string, more: object): Scenario['prepare'] {
  let count = 0 // across all rounds and controllers
  return ({ run, adminToken, seeded: { topology } }) => ({
    next() {
      count += 1
      const identity = newIdentity(`bench-${kind}-${run}-${count}`, count, topology)
      return post(`${managementRoot}/identities`, { ...identity, ...more }, adminToken)
    },
  })
}

const pageSize = 50

/** All pages of identities in order. */
function pages({ adminToken, seeded: { topology } }: Bench): Load {
  const count = Math.ceil(topology.identities / pageSize)
  return {
    requests: Array.from({ length: count }, (_, at) =>
      get(`${managementRoot}/identities?limit=${pageSize}&offset=${at * pageSize}`, adminToken),
    ),
  }
}

/** Filters for identities across the whole range. Between one in ten and one in a hundred names contain `part`. */
function ofIdentities(
  filterFor: (about: { readonly name: string; readonly part: string }) => string,
): Scenario['prepare'] {
  return ({ adminToken, seeded: { topology } }) => ({
    requests: Array.from({ length: 100 }, (_, at) => {
      const name = names.identity(Math.floor((at * topology.identities) / 100))
      const filter = encodeURIComponent(filterFor({ name, part: String(at % 100).padStart(2, '0') }))
      return get(`${managementRoot}/identities?limit=${pageSize}&filter=${filter}`, adminToken)
    }),
  })
}

const furtherSessions = 5000

/** With further API sessions, which are created once. */
function withSessions(prepare: (bench: Bench) => Load): Scenario['prepare'] {
  const open = once((bench) => openSessions(bench, furtherSessions))
  return async (bench) => {
    await open(bench)
    return prepare(bench)
  }
}

async function openSessions({ url, seeded: { topology } }: Bench, count: number): Promise<void> {
  using anonymous = openApi(url, clientRoot, 8)
  await forEach(count, 8, (at) =>
    logIn(anonymous, names.username(at % topology.withPassword), password, client),
  )
}

async function enrollments({ admin, run, seeded: { topology } }: Bench): Promise<Load> {
  const round = Date.now().toString(36)
  const requests = await forEach(enrollmentsOfRound, 4, async (at): Promise<Request> => {
    const identity = newIdentity(`bench-enroll-${run}-${round}-${at}`, at, topology)
    const { id } = await admin.request<{ id: string }>('POST', '/identities', {
      ...identity,
      enrollment: { ott: true },
    })
    const [token, { csr }] = await Promise.all([tokenOf(admin, id), keyAndRequest()])
    return {
      method: 'POST',
      path: `${clientRoot}/enroll?method=ott&token=${token}`,
      headers: { accept: 'application/json', 'content-type': 'text/plain' },
      body: csr,
    }
  })
  return eachOnce(requests)
}
