import type { Api } from './api.js'
import type { Fleet } from './fleet.js'
import type { Load, Request } from './load.js'
import type { Seeded } from './seed.js'

export interface Scenario {
  readonly name: string
  /** CPU milliseconds of all processes for one request at concurrency 8. */
  readonly goalMs?: number
  /** The same, as a multiple of the bare server in the same run. */
  readonly goalFloors?: number
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
  /** Tokens of identities, logged in once for all rounds. */
  tokens(): Promise<readonly string[]>
  /** Connected routers. Throws unless the run has them. */
  fleet(): Fleet
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
