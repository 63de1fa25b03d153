import type { Admin } from './admin.js'
import type { Client, Server } from './client.js'
import { openClient } from './client.js'
import { startNetwork } from './network.js'
import { samples } from './tests/samples.js'

export type Json = Readonly<Record<string, unknown>>

export const password = 'correct horse'

/** A network with an admin and somebody without a session, and what tests ask of them again and again. */
export async function startFixture() {
  const network = await startNetwork()
  const server: Server = { addresses: [network.address], caPem: network.caPem }
  const admin: Admin = await network.admin()
  const stranger = openClient(server, '/edge/client/v1')
  let made = 0

  const newName = (): string => `n-${made++}`
  const sampleOf = async (kind: string): Promise<Json> => (await samples[kind]?.(admin, newName())) as Json
  const make = async (kind: string, more: object = {}): Promise<string> =>
    admin.create(kind, { ...(await sampleOf(kind)), ...more })
  const logIn = (username: string, secret = password) =>
    stranger.call('POST', '/authenticate?method=password', { username, password: secret })
  return {
    server,
    admin,
    stranger,
    newName,
    sampleOf,
    /** The id of another one of this kind. */
    make,
    get: (path: string) => admin.ask<Json>('GET', path),
    list: (path: string) => admin.ask<Json[]>('GET', path),
    /** Status and code of an answer and, where one is named, the field. */
    async refusalOf(method: string, path: string, body?: unknown, by: Client = admin) {
      const { status, body: answer } = await by.call(method, path, body)
      const { field } = (answer.error?.cause ?? {}) as { readonly field?: string }
      return [status, answer.error?.code, ...(field === undefined ? [] : [field])]
    },
    /** An identity that may log in with a password. */
    async person(more: object = {}) {
      const username = `user-${made++}`
      const id = await make('identities', { name: username, ...more })
      const credentials = { method: 'updb', identityId: id, username, password }
      return { id, username, authenticatorId: await admin.create('authenticators', credentials) }
    },
    logIn,
    statusOfLogin: async (username: string, secret?: string) => (await logIn(username, secret)).status,
    async makeAuthPolicy(updb: object, more: object = {}): Promise<string> {
      const { primary } = (await sampleOf('auth-policies')) as { primary: { updb: object } }
      return make('auth-policies', { primary: { ...primary, updb: { ...primary.updb, ...updb } }, ...more })
    },
    [Symbol.asyncDispose]: () => network[Symbol.asyncDispose](),
  }
}

export type Fixture = Awaited<ReturnType<typeof startFixture>>

export const notFound = [404, 'NOT_FOUND']
export const invalid = (field: string) => [400, 'COULD_NOT_VALIDATE', field]
export const filter = (text: string): string => `filter=${encodeURIComponent(text)}`
export const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString()
