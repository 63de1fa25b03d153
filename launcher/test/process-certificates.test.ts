import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type PeerCertificate, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { openHome } from '../src/home/home.js'
import { openProcessCertificates } from '../src/home/process-certificates.js'
import { secretsIn } from '../src/home/secrets.js'
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

test('each start has an authority of its own, which is not stored', async () => {
  const { open } = await newHome()
  const first = await open()
  const before = await materialIn(await first.certificates.issue({ name: 'pki', hosts: ['pki'] }))
  await first.close()
  const second = await open()
  const after = await materialIn(await second.certificates.issue({ name: 'pki', hosts: ['pki'] }))
  expect(after.ca).not.toEqual(before.ca)
  expect(isIssuedBy(after.cert, before.ca)).toBe(false)
  const stored = await readFile(join(second.home.directory, 'secrets.json'), 'utf8')
  expect(stored).not.toContain('PRIVATE KEY')
})

test('stored authorities of earlier versions are dropped', async () => {
  const { home } = await (await newHome()).open()
  const older = { ...home.secrets, internalAuthorities: [{ pem: 'certificate', privateKey: 'key' }] }
  expect(secretsIn(JSON.stringify(older))).toEqual(home.secrets)
})

test.each([
  ['ahead', 30 * DAY_MS],
  ['behind', -20 * YEAR_MS],
])('an authority from a clock that was %s is replaced, with all certificates', async (_, offsetMs) => {
  const { open } = await newHome()
  const { certificates, at } = await open(Date.now() + offsetMs)
  const directory = await certificates.issue({ name: 'pki', hosts: ['pki'] })
  at(Date.now())
  await certificates.renew()
  expect(verify(directory)).toContain('OK')
})

test('a renewal that fails is reported once, and the last certificate stays', async () => {
  const { open } = await newHome()
  const { certificates, at, warnings } = await open()
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
      const certificates = await openProcessCertificates({
        directory: home.run.tls,
        warn: (line) => warnings.push(line),
        now,
      })
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
