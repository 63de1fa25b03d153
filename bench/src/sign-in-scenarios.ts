import { clientRoot } from './api.js'
import { externalSigner } from './external-tokens.js'
import type { Load } from './load.js'
import { accessTokens, openIdLogins, type Proof } from './openid.js'
import { type Bench, client, get, once, post, type Scenario } from './scenario.js'
import { rowName } from './seed-rows.js'
import { names, password } from './topology.js'

/** Logins, and requests with access tokens. Their identities are spread over all that have a password. */
export const signInScenarios: readonly Scenario[] = [
  { name: 'whoami-bearer', prepare: once(bearerReads) },
  { name: 'login-password', prepare: passwordLogins },
  { name: 'login-certificate', prepare: certificateLogins },
  { name: 'login-ext-jwt', prepare: once(externalLogins) },
  { name: 'login-openid', prepare: openIdByPassword },
  { name: 'login-openid-ext-jwt', prepare: once(openIdByToken) },
]

const mostLogins = 500
const holdersOfTokens = 200

function usernames({ seeded: { topology, rows } }: Bench, most = mostLogins): string[] {
  const all = rows || topology.withPassword
  const count = Math.min(most, all)
  const nameAt = rows ? rowName : names.username
  return Array.from({ length: count }, (_, at) => nameAt(Math.floor((at * all) / count)))
}

async function identityIds(bench: Bench): Promise<string[]> {
  if (bench.seeded.rows) return usernames(bench) // rows have one name for everything
  const filter = encodeURIComponent('name contains "bench-identity-" sort by name')
  const path = `/identities?limit=${mostLogins}&filter=${filter}`
  return (await bench.admin.request<{ id: string }[]>('GET', path)).map(({ id }) => id)
}

function passwordLogins(bench: Bench): Load {
  const path = `${clientRoot}/authenticate?method=password`
  return { requests: usernames(bench).map((username) => post(path, { username, password, ...client })) }
}

function certificateLogins({ seeded: { certificates } }: Bench): Load {
  return { request: post(`${clientRoot}/authenticate?method=cert`, client), certificates }
}

async function externalTokens(bench: Bench): Promise<string[]> {
  const sign = await externalSigner(bench.admin)
  return (await identityIds(bench)).map(sign)
}

async function externalLogins(bench: Bench): Promise<Load> {
  const { headers, ...request } = post(`${clientRoot}/authenticate?method=ext-jwt`, client)
  const tokens = await externalTokens(bench)
  return {
    requests: tokens.map((token) => ({
      ...request,
      headers: { ...headers, authorization: `Bearer ${token}` },
    })),
  }
}

const byPassword = (username: string): Proof => ({ method: 'password', form: { username, password } })

function openIdByPassword(bench: Bench): Load {
  return { run: openIdLogins(usernames(bench).map(byPassword)) }
}

async function openIdByToken(bench: Bench): Promise<Load> {
  const tokens = await externalTokens(bench)
  return { run: openIdLogins(tokens.map((token) => ({ method: 'ext-jwt', token }))) }
}

async function bearerReads(bench: Bench): Promise<Load> {
  const tokens = await accessTokens(bench.url, usernames(bench, holdersOfTokens).map(byPassword))
  const { headers, ...request } = get(`${clientRoot}/current-identity`)
  return {
    requests: tokens.map((token) => ({
      ...request,
      headers: { ...headers, authorization: `Bearer ${token}` },
    })),
  }
}
