import { createHash, randomBytes } from 'node:crypto'
import { withClient } from '@overlay/store/postgres/migrate'
import type pg from 'pg'
import { busUser, startBroker } from '../src/servers/broker.js'
import { prepareAndMigrate, type Service, schemaOf } from '../src/servers/schemas.js'
import { freePort } from '../src/system/ports.js'

export { withDatabase } from '../src/commands/with-database.js'
export { isHealthy, probeHealth, readinessOf } from '../src/processes/health.js'
export { samplesOf } from '../src/processes/prometheus-text.js'
export { type TestCertificates, testCertificates } from './test-certificates.js'
export { type TestPostgres, testPostgres } from './test-postgres.js'
export { busPrograms, type TlsBus, tlsBus } from './tls-bus.js'
export { type TlsPostgres, tlsPostgres } from './tls-postgres.js'
export { freePort, withClient }

export interface TestDatabase extends AsyncDisposable {
  /** For the owner of all schemas: launcher and migration job. */
  readonly ownerUrl: string
  /** For the role of one service. */
  urlOf(service: Service): string
}

/** A fresh database with the schemas of these services, migrated. Dropped at the end. */
export async function testDatabase(...services: Service[]): Promise<TestDatabase> {
  const server = serverUrl()
  const name = `test_${randomBytes(6).toString('hex')}`
  await withClient(server, async (client) => {
    const template = await templateOf(client, server, services)
    await client.query(`create database ${name} template ${template}`)
  })
  return {
    ownerUrl: at(server, name),
    urlOf: (service) => at(server, name, `overlay_${service}`),
    [Symbol.asyncDispose]: () =>
      withClient(server, async (client) => {
        await client.query(`drop database ${name} with (force)`)
      }),
  }
}

function serverUrl(): string {
  const url = process.env.OVERLAY_TEST_POSTGRES_URL
  if (!url)
    throw new Error('OVERLAY_TEST_POSTGRES_URL is not set: the test is not in a project with a database')
  return url
}

/** Migrates once for all tests with the same schemas. A copy takes a tenth of the time. */
async function templateOf(client: pg.Client, server: string, services: Service[]): Promise<string> {
  const schemas = [...services].sort()
  const name = `template_${createHash('sha256').update(schemas.join()).digest('hex').slice(0, 12)}`
  await client.query('select pg_advisory_lock($1)', [templateLock])
  try {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
    if (rowCount === 0) {
      // under another name first, so that a template is always complete
      const unfinished = `${name}_unfinished`
      await client.query(`drop database if exists ${unfinished} with (force)`)
      await client.query(`create database ${unfinished}`)
      await prepareAndMigrate(
        at(server, unfinished),
        schemas.map((service) => schemaOf(service, 'x', 'overlay')),
      )
      await client.query(`alter database ${unfinished} rename to ${name}`)
    }
  } finally {
    await client.query('select pg_advisory_unlock($1)', [templateLock])
  }
  return name
}
const templateLock = 7_245_190

function at(server: string, database: string, user?: string): string {
  const url = new URL(server)
  url.pathname = `/${database}`
  if (user) url.username = user
  return url.href
}

export interface TestBus extends AsyncDisposable {
  readonly url: string
  /** For the NATS library, which ignores the password in a URL. */
  readonly login: { readonly servers: string; readonly user: string; readonly pass: string }
  stop(): Promise<void>
  /** Starts it again at the same address. */
  start(): Promise<void>
}

/** A bus that a test may stop and start. */
export async function testBus(password = randomBytes(24).toString('base64url')): Promise<TestBus> {
  const port = await freePort()
  let broker = await startBroker({ port, password })
  const stop = (): Promise<void> => broker.stop()
  return {
    url: broker.url,
    login: { servers: `127.0.0.1:${port}`, user: busUser, pass: password },
    stop,
    async start() {
      broker = await startBroker({ port, password })
    },
    [Symbol.asyncDispose]: stop,
  }
}
