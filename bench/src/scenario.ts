import type { Api } from './api.js'
import type { Fleet } from './fleet.js'
import type { Load, Request } from './load.js'
import type { Seeded } from './seed.js'

export interface Scenario {
  readonly name: string
  /** In place of the option `--concurrency`. */
  readonly concurrency?: number
  /** Prepares the requests before each round. It is not measured. */
  prepare(bench: Bench): Promise<Load> | Load
}

/** A seeded controller, and its sessions. */
export interface Bench {
  readonly url: string
  readonly admin: Api
  readonly adminToken: string
  readonly seeded: Seeded
  /** Different in each run, so that names are unique. */
  readonly run: string
  /** How often a scenario is prepared. */
  readonly rounds: number
  /** Tokens of identities, logged in once for all rounds. */
  tokens(): Promise<readonly string[]>
  /** Connected routers. Throws unless the run has them. */
  fleet(): Fleet
}

/** Prepares once for all rounds of a controller. */
export function once<T>(prepare: (bench: Bench) => Promise<T>): (bench: Bench) => Promise<T> {
  const prepared = new WeakMap<Bench, Promise<T>>()
  return (bench) => {
    const result = prepared.get(bench) ?? prepare(bench)
    prepared.set(bench, result)
    return result
  }
}

/** Each request once, in no order. */
export function eachOnce(requests: Request[]): Load {
  const amount = requests.length
  if (amount === 0) throw new Error('all requests are used up: fewer rounds or a greater scale are necessary')
  return {
    amount,
    next() {
      const request = requests.pop()
      if (!request) throw new Error(`all ${amount} requests are used up`)
      return request
    },
  }
}

export const get = (path: string, token?: string): Request => ({
  method: 'GET',
  path,
  headers: { accept: 'application/json', ...(token && { 'zt-session': token }) },
})

export const post = (path: string, body: object, token?: string): Request => ({
  method: 'POST',
  path,
  headers: {
    accept: 'application/json',
    'content-type': 'application/json',
    ...(token && { 'zt-session': token }),
  },
  body: JSON.stringify(body),
})

/** What clients tell about themselves at a login. */
export const client = { envInfo: { os: 'linux', arch: 'amd64' }, sdkInfo: { type: 'bench', version: '1' } }
