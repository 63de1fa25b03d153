import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type PeerCertificate, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { openHome } from '../src/home/home.js'
import { signingAuthority } from '../src/home/internal-authorities.js'
import { openProcessCertificates } from '../src/home/process-certificates.js'
import { secretsForNewHome, secretsIn } from '../src/home/secrets.js'
import { accountsOf } from '../src/system/account.js'

const DAY_MS = 86_400_000
const YEAR_MS = 365.25 * DAY_MS

test('a process gets the certificate of its service for both purposes, which OpenSSL verifies', async () => {
  const { open } = await newHome()
  const { certificates } = await open()
  const directory = await certificates.issue({ name: 'policy-2', hosts: ['policy', '127.0.0.1'] })
  expect(directory).toMatch(/\/policy-2$/)
  for (const purpose of ['sslserver', 'sslclient'])
    expect(verify(directory, '-purpose', purpose, '-verify_hostname', 'policy')).toContain('OK')
  const leaf = new X509Certificate(await readFile(join(directory, 'tls.crt')))
  expect(leaf.subjectAltName).toBe('DNS:policy, IP Address:127.0.0.1')
  expect((Date.parse(leaf.validTo) - Date.now()) / DAY_MS).toBeCloseTo(7, 1)
  const authority = new X509Certificate(await readFile(join(directory, 'ca.crt')))
  expect((Date.parse(authority.validTo) - Date.now()) / YEAR_MS).toBeCloseTo(10, 1)
  expect(authority.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
})

test('processes connect by their certificates, and not by those of another machine', async () => {
  const [one, other] = [await newHome(), await newHome()]
  const [ours, theirs] = [await one.open(), await other.open()]
  const server = await materialIn(await ours.certificates.issue({ name: 'pki', hosts: ['pki'] }))
  const client = await materialIn(await ours.certificates.issue({ name: 'gateway', hosts: ['gateway'] }))
  const stranger = await materialIn(await theirs.certificates.issue({ name: 'gateway', hosts: ['gateway'] }))
  expect(await handshake(server, client, 'pki')).toBe('gateway')
  expect(await handshake(server, stranger, 'pki')).toBe('SELF_SIGNED_CERT_IN_CHAIN')
  const informed = { ...stranger, ca: client.ca }
  expect(await handshake(server, informed, 'pki')).toMatch(/^UNABLE_TO_/)
  expect(await handshake(server, client, 'identity')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
})

test('only the account of the processes reads their keys, and only the launcher writes them', async () => {
  const { open } = await newHome()
  const { certificates, home } = await open()
  const account = home.accounts.processes
  const directory = await certificates.issue({ name: 'pki', hosts: ['pki'], account })
  const operator = await certificates.issue({ name: 'operator', hosts: ['operator'] })
  const own = { uid: process.getuid?.(), gid: process.getgid?.() }
  const modesOf = async (at: string) => {
    const paths = [at, join(at, await readlink(join(at, '..data'))), join(at, 'tls.key')]
    return Promise.all(
      paths.map(async (path) => {
        const { mode, uid, gid } = await stat(path)
        return { mode: mode & 0o777, uid, gid }
      }),
    )
  }
  const isShared = account.gid !== undefined
  const read = { uid: own.uid, gid: account.gid ?? own.gid }
  const mode = isShared ? [0o750, 0o640] : [0o700, 0o600]
  expect(await modesOf(directory)).toEqual([mode[0], mode[0], mode[1]].map((mode) => ({ mode, ...read })))
  expect(await modesOf(operator)).toEqual([0o700, 0o700, 0o600].map((mode) => ({ mode, ...own })))
})

test('a certificate is renewed after a day, all its files at once', async () => {
  const { open } = await newHome()
  const { certificates, at } = await open()
  let renewals = 0
  const directory = await certificates.issue({ name: 'pki', hosts: ['pki'], onRenewed: () => renewals++ })
  const first = await materialIn(directory)
  await certificates.renew()
  expect(await materialIn(directory)).toEqual(first)
  const generations = new Set<string>()
  for (let day = 1; day <= 3; day++) {
    at(Date.now() + day * DAY_MS)
    await certificates.renew()
    generations.add(await readlink(join(directory, '..data')))
  }
  expect(generations.size).toBe(3)
  expect(renewals).toBe(3)
  const renewed = await materialIn(directory)
  expect(renewed.ca).toEqual(first.ca)
  expect(renewed.cert).not.toEqual(first.cert)
  expect(renewed.key).not.toEqual(first.key)
  const { notBefore } = validityOf(renewed.cert)
  expect(Math.round((notBefore - Date.now()) / DAY_MS)).toBe(3)
  expect((await readdir(directory)).sort()).toEqual([
    expect.stringMatching(/^\.\.at_/),
    expect.stringMatching(/^\.\.at_/),
    '..data',
    'ca.crt',
    'tls.crt',
    'tls.key',
  ])
})

test('the authority stays over restarts, and is renewed at two thirds of its life, with an overlap', async () => {
  const { open } = await newHome()
  const first = await open()
  const before = await materialIn(await first.certificates.issue({ name: 'pki', hosts: ['pki'] }))
  await first.close()

  const second = await open()
  const directory = await second.certificates.issue({ name: 'pki', hosts: ['pki'] })
  expect((await materialIn(directory)).ca).toEqual(before.ca)

  second.at(Date.now() + 6.7 * YEAR_MS)
  await second.certificates.renew()
  const announced = await materialIn(directory)
  expect(authoritiesIn(announced.ca)).toHaveLength(2)
  expect(isIssuedBy(announced.cert, before.ca)).toBe(true)

  second.at(Date.now() + 6.7 * YEAR_MS + DAY_MS + 1000)
  await second.certificates.renew()
  const renewed = await materialIn(directory)
  expect(renewed.ca).toEqual(announced.ca)
  expect(isIssuedBy(renewed.cert, before.ca)).toBe(false)
  expect(isIssuedBy(renewed.cert, authoritiesIn(renewed.ca)[0] ?? '')).toBe(true)

  second.at(Date.now() + 10.1 * YEAR_MS)
  await second.certificates.renew()
  expect(authoritiesIn((await materialIn(directory)).ca)).toEqual(authoritiesIn(renewed.ca).slice(0, 1))
  await second.close()
  const { home } = await open()
  expect(home.secrets.internalAuthorities).toHaveLength(1)
})

test('an authority from a clock that was ahead is replaced', async () => {
  const { open } = await newHome()
  const ahead = await open(Date.now() + 30 * DAY_MS)
  await ahead.close()
  const { certificates } = await open()
  const directory = await certificates.issue({ name: 'pki', hosts: ['pki'] })
  expect(verify(directory)).toContain('OK')
})

test('a renewal that fails is reported once, and the last certificate stays', async () => {
  const { open } = await newHome()
  const { certificates, at, home, warnings } = await open()
  const directory = await certificates.issue({ name: 'pki', hosts: ['pki'] })
  const first = await materialIn(directory)
  const link = join(directory, '..data_new')
  await mkdir(join(link, 'in the way'), { recursive: true })
  at(Date.now() + DAY_MS + 1000)
  await certificates.renew()
  await certificates.renew()
  expect(warnings).toEqual([expect.stringContaining('certificates between processes not renewed')])
  expect(await materialIn(directory)).toEqual(first)
  await rm(link, { recursive: true })
  await certificates.renew()
  expect((await materialIn(directory)).cert).not.toEqual(first.cert)
  expect(home.secrets.internalAuthorities).toEqual([]) // those of the start
})

test('secrets of earlier versions get an authority; a restored home gets its own', async () => {
  const { open } = await newHome()
  const { home, certificates, close } = await open()
  const { internalAuthorities, ...older } = home.secrets
  expect(secretsIn(JSON.stringify(older)).internalAuthorities).toEqual([])
  await certificates.issue({ name: 'pki', hosts: ['pki'] })
  await close()
  const again = await open()
  expect(again.home.secrets.internalAuthorities).toHaveLength(1)
  expect(secretsForNewHome(again.home.secrets).internalAuthorities).toEqual([])
  expect(internalAuthorities).toEqual([])
})

test('there is always an authority that signs', () => {
  expect(() => signingAuthority([], new Date())).toThrow('no authority')
})

/** A home whose launcher a test starts, at a time of its own. */
async function newHome() {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  await chmod(directory, 0o755)
  return {
    async open(startMs?: number) {
      let nowMs = startMs
      const warnings: string[] = []
      const home = await openHome(join(directory, 'home'), accountsOf(61_000))
      const now = () => new Date(nowMs ?? Date.now())
      const certificates = await openProcessCertificates({ home, warn: (line) => warnings.push(line), now })
      let isOpen = true
      const close = async (): Promise<void> => {
        if (!isOpen) return
        isOpen = false
        await certificates[Symbol.asyncDispose]()
        await home.release()
      }
      onTestFinished(close)
      const at = (ms: number): void => {
        nowMs = ms
      }
      return { home, certificates, warnings, close, at }
    },
  }
}

interface Material {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

async function materialIn(directory: string): Promise<Material> {
  const read = (name: string) => readFile(join(directory, name), 'utf8')
  return { cert: await read('tls.crt'), key: await read('tls.key'), ca: await read('ca.crt') }
}

const verify = (directory: string, ...options: readonly string[]): string =>
  execFileSync(
    'openssl',
    ['verify', '-x509_strict', ...options, '-CAfile', join(directory, 'ca.crt'), join(directory, 'tls.crt')],
    { encoding: 'utf8' },
  )

const authoritiesIn = (pem: string): readonly string[] =>
  pem.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []

const isIssuedBy = (pem: string, authority: string): boolean =>
  new X509Certificate(pem).verify(new X509Certificate(authority).publicKey)

const validityOf = (pem: string) => ({ notBefore: Date.parse(new X509Certificate(pem).validFrom) })

/** The name of the client, or the code of the error of the first side that refuses the other. */
async function handshake(server: Material, client: Material, servername: string): Promise<string> {
  const listening = createServer({
    ...server,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
  })
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve))
  const address = listening.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const atServer = new Promise<string>((resolve) => {
    listening.once('tlsClientError', (err, { authorizationError }) =>
      resolve(String(authorizationError ?? err.message)),
    )
    listening.once('secureConnection', (socket: TLSSocket) => {
      const { subject }: PeerCertificate = socket.getPeerCertificate()
      resolve(String(subject.CN))
    })
  })
  const socket = connect({ host: '127.0.0.1', port, servername, ...client })
  onTestFinished(() => {
    socket.destroy()
    listening.close()
  })
  const atClient = new Promise<string>((resolve) => {
    socket.once('secureConnect', () => resolve('trusted'))
    socket.on('error', (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message))
  })
  const trust = await atClient
  return trust === 'trusted' ? atServer : trust
}
