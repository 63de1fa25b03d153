import type { Admin } from './admin.js'
import type { Client, Server } from './client.js'
import { openClient } from './client.js'
import { type NetworkOptions, startNetwork } from './network.js'
import { samples } from './tests/samples.js'

export type Json = Readonly<Record<string, unknown>>

export const password = 'correct horse'

/** A network with an admin, a client without a session, and common requests of tests. */
export async function startFixture(options: NetworkOptions = {}) {
  const network = await startNetwork(options)
  const server: Server = { addresses: [network.address], caPem: network.caPem }
  const admin: Admin = await network.admin()
  const anonymous = openClient(server, '/edge/client/v1')
  let count = 0

  const newName = (): string => `n-${count++}`
  const sampleOf = async (kind: string): Promise<Json> => (await samples[kind]?.(admin, newName())) as Json
  const createSample = async (kind: string, more: object = {}): Promise<string> =>
    admin.create(kind, { ...(await sampleOf(kind)), ...more })
  const logIn = (username: string, secret = password) =>
    anonymous.call('POST', '/authenticate?method=password', { username, password: secret })
  return {
    server,
    /** The directory of the logs. */
    home: network.home,
    admin,
    anonymous,
    newName,
    sampleOf,
    /** Creates another entity of the kind and returns its id. */
    createSample,
    get: (path: string) => admin.request<Json>('GET', path),
    list: (path: string) => admin.request<Json[]>('GET', path),
    /** Status, code and, if there is one, the field of an answer. */
    async refusalOf(method: string, path: string, body?: unknown, by: Client = admin) {
      const { status, body: answer } = await by.call(method, path, body)
      const { field } = (answer.error?.cause ?? {}) as { readonly field?: string }
      return [status, answer.error?.code, ...(field === undefined ? [] : [field])]
    },
    /** Creates an identity with a password. */
    async createUser(more: object = {}) {
      const username = `user-${count++}`
      const id = await createSample('identities', { name: username, ...more })
      const credentials = { method: 'updb', identityId: id, username, password }
      return { id, username, authenticatorId: await admin.create('authenticators', credentials) }
    },
    logIn,
    statusOfLogin: async (username: string, secret?: string) => (await logIn(username, secret)).status,
    async makeAuthPolicy(updb: object, more: object = {}): Promise<string> {
      const { primary } = (await sampleOf('auth-policies')) as { primary: { updb: object } }
      return createSample('auth-policies', {
        primary: { ...primary, updb: { ...primary.updb, ...updb } },
        ...more,
      })
    },
    [Symbol.asyncDispose]: () => network[Symbol.asyncDispose](),
  }
}

export type Fixture = Awaited<ReturnType<typeof startFixture>>

export const notFound = [404, 'NOT_FOUND']
export const invalid = (field: string) => [400, 'COULD_NOT_VALIDATE', field]
export const filter = (text: string): string => `filter=${encodeURIComponent(text)}`
export const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString()
