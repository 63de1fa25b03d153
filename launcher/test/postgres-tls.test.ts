import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tlsWarning, withClient, withTlsDirectory } from '@overlay/store/postgres/migrate'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { explainDatabase } from '../src/servers/external-servers.js'
import { testCertificates } from '../testing/test-certificates.js'
import { testPostgres } from '../testing/test-postgres.js'
import { type TlsPostgres, tlsPostgres } from '../testing/tls-postgres.js'

// Postgres takes connections of its own user with TLS and a password, of others with a certificate

const DAY_MS = 86_400_000

let postgres: TlsPostgres
beforeAll(async () => {
  postgres = await tlsPostgres()
})
afterAll(() => postgres?.[Symbol.asyncDispose]())

const connect = (url: string): Promise<string> =>
  explainDatabase(url, () => withClient(url, async () => 'connected'))
const secured = (url: string): string => withTlsDirectory(url, postgres.directory)
const byAddress = (url: string): string => url.replace('localhost', '127.0.0.1')

test('a directory connects with its authority and its certificate, and verifies the host', async () => {
  const { ownerUrl, adminUrl } = postgres
  expect(await connect(secured(ownerUrl))).toBe('connected')
  await expect(connect(byAddress(secured(adminUrl)))).rejects.toThrow('its certificate is for another host')
  expect(await connect(secured(`${adminUrl}?sslmode=verify-full`))).toBe('connected')
})

test('sslmode is as in libpq: verify-ca ignores the host, require verifies if there is an authority', async () => {
  const { adminUrl, directory } = postgres
  await using others = await testCertificates()
  const stranger = await others.issue({ name: 'stranger', hosts: ['stranger'] })
  const ca = `sslrootcert=${directory}/ca.crt`
  for (const mode of ['verify-ca', 'require']) {
    expect(await connect(byAddress(`${adminUrl}?sslmode=${mode}&${ca}`)), mode).toBe('connected')
    const untrusted = connect(`${adminUrl}?sslmode=${mode}&sslrootcert=${stranger}/ca.crt`)
    await expect(untrusted, mode).rejects.toThrow(
      'its certificate is not trusted: put its authority into ca.crt',
    )
  }
  await expect(connect(`${adminUrl}?sslmode=verify-ca`)).rejects.toThrow('requires an authority of your own')
  expect(await connect(`${adminUrl}?sslmode=require`)).toBe('connected')
  expect(tlsWarning(`${adminUrl}?sslmode=require`)).toContain('does not verify the server')
  expect(tlsWarning(`${adminUrl}?sslmode=require&${ca}`)).toBeUndefined()
  await expect(connect(`${adminUrl}?sslmode=verify-full`)).rejects.toThrow('is not trusted')
  await expect(connect(`${adminUrl}?sslrootcert=system`)).rejects.toThrow('is not trusted')
  for (const mode of ['prefer', 'allow', 'no-verify', 'ful'])
    await expect(connect(secured(`${adminUrl}?sslmode=${mode}`)), mode).rejects.toThrow(
      `sslmode=${mode} is not possible: use disable, require, verify-ca, verify-full`,
    )
})

test('what a server refuses is said in one line, with what to do', async () => {
  const { ownerUrl, adminUrl, directory } = postgres
  const ca = `sslrootcert=${directory}/ca.crt`
  await using others = await testCertificates()
  const stranger = await others.issue({ name: 'controller', hosts: ['controller'] })
  const expected: readonly (readonly [string, string])[] = [
    [adminUrl, 'no encryption): if the server requires TLS, set OVERLAY_DATABASE_TLS'],
    [secured(`${adminUrl}?sslmode=disable`), 'no encryption): if the server requires TLS'],
    [`${ownerUrl}?${ca}`, 'valid client certificate): put tls.crt and tls.key into OVERLAY_DATABASE_TLS'],
    [secured(ownerUrl.replace('overlay@', 'ana@')), 'correct the user or its certificate'],
    [
      `${ownerUrl}?${ca}&sslcert=${stranger}/tls.crt&sslkey=${stranger}/tls.key`,
      'it requires a client certificate that it trusts',
    ],
  ]
  for (const [url, message] of expected) {
    const problem = await connect(url).catch((err: Error) => err.message)
    expect(problem).toContain(message)
    expect(problem).not.toMatch(/\n|sesame/)
  }
})

test('a server without TLS, and one with an expired certificate, are refused', async () => {
  await using plain = await testPostgres()
  const { directory } = postgres
  await expect(connect(withTlsDirectory(plain.url, directory))).rejects.toThrow(
    'the server has no TLS: set ssl = on there',
  )
  await using expired = await tlsPostgres({ issuedAt: new Date(Date.now() - 9 * DAY_MS) })
  await expect(connect(`${expired.adminUrl}?sslrootcert=${expired.directory}/ca.crt`)).rejects.toThrow(
    'its certificate has expired: renew it there',
  )
})

test('unusable files are refused before a connection, by their name', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const at = (name: string): string => join(directory, name)
  const refused = (message: string) =>
    expect(connect(withTlsDirectory(postgres.ownerUrl, directory))).rejects.toThrow(message)
  await refused(`cannot read ${at('ca.crt')}: there is no such file`)
  await writeFile(at('ca.crt'), 'nothing')
  await refused(`${at('ca.crt')} contains no valid certificate in PEM`)
  await copyFile(join(postgres.directory, 'ca.crt'), at('ca.crt'))
  await copyFile(join(postgres.directory, 'tls.crt'), at('tls.crt'))
  await refused(`cannot read ${at('tls.key')}: there is no such file`)
  await writeFile(at('tls.key'), '-----BEGIN ENCRYPTED PRIVATE KEY-----\n')
  await refused(`${at('tls.key')} is not a private key in PEM without a passphrase`)
  await using others = await testCertificates(new Date(Date.now() - 9 * DAY_MS))
  const expired = await others.issue({ name: 'controller', hosts: ['controller'] })
  await copyFile(join(expired, 'tls.key'), at('tls.key'))
  await refused(`${at('tls.key')} does not fit the certificate in ${at('tls.crt')}`)
  await copyFile(join(expired, 'tls.crt'), at('tls.crt'))
  await refused(`${at('tls.crt')} expired on `)
  await rm(at('tls.key'))
  await symlink(at('tls.key'), at('tls.key'))
  await refused(`cannot read ${at('tls.key')}: ELOOP`)
})

test('files that become unusable are logged once, and the last usable ones stay', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  for (const name of ['ca.crt', 'tls.crt', 'tls.key'])
    await copyFile(join(postgres.directory, name), join(directory, name))
  const url = withTlsDirectory(postgres.ownerUrl, directory)
  expect(await connect(url)).toBe('connected')
  await writeFile(join(directory, 'tls.key'), '')
  expect(await connect(url)).toBe('connected')
  await rm(join(directory, 'ca.crt'))
  expect(await connect(url)).toBe('connected')
})
