import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { busUser, startBroker } from '../src/servers/broker.js'
import { accountsOf, DEFAULT_UID } from '../src/system/account.js'
import { freePort } from '../src/system/ports.js'
import { findNatsServer, startNatsServer } from './nats-server.js'
import { type TestCertificates, testCertificates } from './test-certificates.js'

export interface TlsBus extends AsyncDisposable {
  /** With the password and the host name of its certificate. */
  readonly url: string
  /** The directory by which clients connect. */
  readonly directory: string
  /** Renews the certificates of server and clients. New connections use them. */
  renew(): Promise<void>
  /** Server and clients get certificates of another authority, the server at its next start. @returns the new directory of clients */
  replaceAuthority(): Promise<string>
  /** Ends all connections. The server takes new ones at the same address at once. */
  restart(): Promise<void>
}

/** The programs that a test can start as a bus. */
export const busPrograms = [
  'built-in',
  ...((await findNatsServer()) ? (['nats-server'] as const) : []),
] as const

const DAY_MS = 86_400_000

/** A bus that takes only clients with a certificate of its authority and the password. */
export async function tlsBus(
  program: (typeof busPrograms)[number],
  hosts: readonly [string, ...string[]] = ['localhost'],
): Promise<TlsBus> {
  const certificates = await testCertificates(new Date(Date.now() - 2 * DAY_MS))
  const { processes: account } = accountsOf(DEFAULT_UID)
  const [port, password] = [await freePort(), randomBytes(24).toString('base64url')]
  let reload = (): void => undefined
  const others: TestCertificates[] = []
  let tls = await certificates.issue({ name: 'nats', hosts, onRenewed: () => reload() })
  const directory = await certificates.issue({ name: 'controller', hosts: ['controller'], account })
  const configFile = join(tmpdir(), `overlay-test-nats-${port}.conf`)
  const path = program === 'nats-server' ? await findNatsServer() : undefined
  const start = async () => {
    const options = { port, password, tls }
    const server = path ? await startNatsServer({ path, configFile, ...options }) : await startBroker(options)
    reload = server.reload
    return server
  }
  let server = await start()
  return {
    url: `tls://${busUser}:${password}@localhost:${port}`,
    directory,
    renew: () => certificates.at(new Date()),
    async replaceAuthority() {
      const next = await testCertificates()
      others.push(next)
      tls = await next.issue({ name: 'nats', hosts })
      return next.issue({ name: 'controller', hosts: ['controller'], account })
    },
    async restart() {
      await server.stop()
      server = await start()
    },
    async [Symbol.asyncDispose]() {
      await server.stop()
      await rm(configFile, { force: true })
      for (const one of [certificates, ...others]) await one[Symbol.asyncDispose]()
    },
  }
}
