import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Admin } from '../admin.js'
import { type Traffic, until } from '../traffic.js'
import { type Application, startApplication } from './application.js'
import { type GoVersion, goProgram, goVersions } from './go.js'
import { cSdk, pythonWith } from './python.js'

export const MEGABYTE = 1024 * 1024

export type Sdk = `go-${GoVersion}` | 'c'
/** How the Go SDK signs in. `announced`: it asks the controller, as applications do. */
export type Scheme = 'sessions' | 'oidc' | 'announced'

export interface Event {
  readonly event: 'ready' | 'accepted' | 'middle' | 'refreshed' | 'done' | 'ended' | 'refused'
  readonly bytes?: number
  readonly sent?: string
  readonly received?: string
  readonly error?: string
}

export interface Running extends Application {
  readonly identityId: string
}

export interface StartOptions {
  readonly sdk: Sdk
  readonly scheme?: Scheme
  readonly roleAttributes?: readonly string[]
}

/** Applications on SDKs in a network. */
export interface Applications extends AsyncDisposable {
  /** False: the SDK could not be prepared on this machine. */
  has(sdk: Sdk): boolean
  /** Starts an application that hosts or dials a service, and waits until it has signed in. */
  start(role: 'host' | 'dial', service: string, options: StartOptions): Promise<Running>
  /** Waits until the service has a terminator. */
  hosted(serviceId: string): Promise<void>
  /** Creates a service, and starts both applications, the client when the service has a terminator. */
  pair(host: StartOptions, client: StartOptions): Promise<Pair>
}

export interface Pair {
  readonly name: string
  readonly serviceId: string
  readonly host: Running
  readonly client: Running
}

/** @param traffic is called when an application starts */
export async function openApplications(sdks: readonly Sdk[], traffic: () => Traffic): Promise<Applications> {
  const folder = await mkdtemp(join(tmpdir(), 'overlay-applications-'))
  const running: Application[] = []
  const commands = new Map<Sdk, readonly [string, ...string[]]>()
  let count = 0
  const prepared = sdks.map(async (sdk) => void commands.set(sdk, await commandOf(sdk)))
  for (const outcome of await Promise.allSettled(prepared)) {
    if (outcome.status === 'fulfilled') continue
    if (process.env.CI === 'true') throw outcome.reason
    console.warn(`skipping tests, because an SDK cannot be prepared: ${outcome.reason}`)
  }
  const applications: Applications = {
    has: (sdk) => commands.has(sdk),
    async start(role, service, { sdk, scheme = 'announced', roleAttributes = [] }) {
      const [command = '', ...program] = commands.get(sdk) ?? []
      const name = `${role}-${count++}`
      const attributes = [role === 'host' ? 'host' : 'client', ...roleAttributes]
      const { identityId, token } = await invite(traffic().admin, folder, name, attributes)
      const more = sdk === 'c' ? [join(folder, `${name}.json`), role, service] : [role, service, scheme]
      const application = startApplication(command, [...program, token, ...more], { timeoutMs: 120_000 })
      running.push(application)
      expect(await application.next<Event>()).toMatchObject({ event: 'ready' })
      return { ...application, identityId }
    },
    async pair(host, client) {
      const name = `service-${count++}`
      const serviceId = await traffic().service(name, { encryptionRequired: true })
      const hosting = await applications.start('host', name, host)
      await applications.hosted(serviceId)
      return { name, serviceId, host: hosting, client: await applications.start('dial', name, client) }
    },
    async hosted(serviceId) {
      await until(async () => {
        const path = `/services/${serviceId}/terminators`
        return (await traffic().admin.request<object[]>('GET', path)).length > 0
      })
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(running.map((one) => one[Symbol.asyncDispose]()))
      await rm(folder, { recursive: true })
    },
  }
  return applications
}

/** Creates an identity, and a file with its enrollment token. */
export async function invite(
  admin: Admin,
  folder: string,
  name: string,
  roleAttributes: readonly string[],
): Promise<{ readonly identityId: string; readonly token: string }> {
  const identityId = await admin.create('identities', {
    name,
    type: 'Device',
    isAdmin: false,
    enrollment: { ott: true },
    roleAttributes,
  })
  const { enrollment } = await admin.request<{ enrollment: { ott: { jwt: string } } }>(
    'GET',
    `/identities/${identityId}`,
  )
  const token = join(folder, `${name}.jwt`)
  await writeFile(token, enrollment.ott.jwt)
  return { identityId, token }
}

async function commandOf(sdk: Sdk): Promise<[string, ...string[]]> {
  if (sdk === 'c') return [await pythonWith(cSdk), join(import.meta.dirname, 'c-sdk-traffic.py')]
  const version = goVersions.find((version) => sdk === `go-${version}`)
  if (!version) throw new Error(`unknown SDK ${sdk}`)
  return [await goProgram(version)]
}

/** Sends bytes through a pair, and expects them back unchanged. */
export async function transfer({ client }: Pick<Pair, 'client'>, bytes: number): Promise<void> {
  client.write(`transfer ${bytes} ${bytes}`)
  const done = await client.next<Event>()
  expect(done, done.error).toMatchObject({ event: 'done', bytes })
  expect(done.received).toBe(done.sent)
}
