import { writeFile } from 'node:fs/promises'
import { withClient } from '@overlay/store/postgres/migrate'
import { services } from '../src/servers/schemas.js'
import { accountsOf, DEFAULT_UID } from '../src/system/account.js'
import { testCertificates } from './test-certificates.js'
import { testPostgres } from './test-postgres.js'

export interface TlsPostgres extends AsyncDisposable {
  /** Of the user of the server, who may do everything. Has the password and no files for TLS. */
  readonly adminUrl: string
  /** The directory by which clients connect; the certificate in it has the common name `controller`. */
  readonly directory: string
  /** Of the owner of a new database, in place of whose password the certificate counts by default. Has no files for TLS. */
  readonly ownerUrl: string
  /** The same for a database that nothing uses. */
  readonly emptyUrl: string
  /** Renews the certificates of server and clients. New connections use them. */
  renew(): Promise<void>
}

const owner = 'overlay'
const empty = 'empty'
const roles = [owner, ...[owner, empty].flatMap((database) => services.map((name) => `${database}_${name}`))]

interface TlsPostgresOptions {
  /** Of all certificates, which are valid for seven days. */
  readonly issuedAt?: Date
  readonly hosts?: readonly [string, ...string[]]
  /** With it, all roles need their passwords besides the certificate. */
  readonly ownerPassword?: string
}

/** A server that takes connections with TLS only, from others than its own user only with a certificate. */
export async function tlsPostgres({
  issuedAt = new Date(Date.now() - 2 * 86_400_000),
  hosts = ['localhost'],
  ownerPassword = '',
}: TlsPostgresOptions = {}): Promise<TlsPostgres> {
  const certificates = await testCertificates(issuedAt)
  const postgres = await testPostgres({ password: 'sesame' })
  const adminUrl = postgres.url.replace('127.0.0.1', 'localhost')
  const accounts = accountsOf(DEFAULT_UID)
  const server = await certificates.issue({
    name: 'postgres',
    hosts,
    account: accounts.database,
  })
  const directory = await certificates.issue({
    name: 'controller',
    hosts: ['controller'],
    account: accounts.processes,
  })
  const urlOf = (database: string): string => {
    const url = new URL(adminUrl)
    url.password = ownerPassword
    url.username = owner
    url.pathname = `/${database}`
    return url.href
  }

  await withClient(postgres.url, async (client) => {
    await client.query(
      `create role ${owner} login createrole${ownerPassword && ` password '${ownerPassword}'`}`,
    )
    for (const database of [owner, empty]) await client.query(`create database ${database} owner ${owner}`)
    const { rows } = await client.query<{ hba: string; ident: string }>(
      "select current_setting('hba_file') as hba, current_setting('ident_file') as ident",
    )
    const { hba = '', ident = '' } = rows[0] ?? {}
    const others = ownerPassword ? 'scram-sha-256 clientcert=verify-ca' : 'cert map=overlay'
    await writeFile(hba, `hostssl all postgres all scram-sha-256\nhostssl all all all ${others}\n`)
    await writeFile(ident, roles.map((role) => `overlay controller ${role}\n`).join(''))
    for (const [name, file] of [
      ['ssl_cert_file', 'tls.crt'],
      ['ssl_key_file', 'tls.key'],
      ['ssl_ca_file', 'ca.crt'],
    ])
      await client.query(`alter system set ${name} = '${server}/${file}'`)
    await client.query('alter system set ssl = on')
  })
  await postgres.stop()
  await postgres.start()
  return {
    adminUrl,
    directory,
    ownerUrl: urlOf(owner),
    emptyUrl: urlOf(empty),
    async renew() {
      await certificates.at(new Date())
      await withClient(`${adminUrl}?sslrootcert=${directory}/ca.crt`, (client) =>
        client.query('select pg_reload_conf()'),
      )
    },
    async [Symbol.asyncDispose]() {
      await postgres[Symbol.asyncDispose]()
      await certificates[Symbol.asyncDispose]()
    },
  }
}
