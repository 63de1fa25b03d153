import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { authority, newAuthority, type TlsFiles } from '../testing/test-certificates.js'
import { openPeerTls, type PeerTlsOptions } from './peer-tls.js'

const DAY_MS = 86_400_000
const days = (count: number): Date => new Date(Date.now() + count * DAY_MS)
const serverAuth = '1.3.6.1.5.5.7.3.1'

async function newDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay test '))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

async function write(directory: string, { certificate, key, authority }: TlsFiles): Promise<void> {
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'tls.crt'), certificate)
  await writeFile(join(directory, 'tls.key'), key)
  await writeFile(join(directory, 'ca.crt'), authority)
}

/** Opens a new directory with these files. */
async function opened(files: TlsFiles, options: PeerTlsOptions = {}) {
  const directory = await newDirectory()
  await write(directory, files)
  return openedAt(directory, options)
}

async function openedAt(directory: string, options: PeerTlsOptions = {}) {
  const lines: string[] = []
  const log = pino({}, { write: (line: string) => lines.push(line) })
  const tls = await openPeerTls(directory, log, { pollMs: 3_600_000, ...options })
  onTestFinished(() => tls[Symbol.dispose]())
  return { tls, directory, lines, certificate: () => tls.contextOptions().cert }
}

const valid = await authority.issue(['policy'])
const other = await authority.issue(['policy'])
const another = await newAuthority()
const lower = await authority.below()
const text = 'no PEM'

test('a certificate names one service', async () => {
  const { tls } = await opened(await authority.issue(['localhost', 'policy', 'policy.overlay.svc']))
  expect(tls.name).toBe('policy')
})

test('a certificate of an intermediate authority is accepted with the certificate of that authority', async () => {
  const files = await (await lower.below()).issue(['policy'])
  await opened(files)
  const [leaf = ''] = files.certificate.split(/(?<=END CERTIFICATE-----\n)/)
  await expect(opened({ ...files, certificate: leaf })).rejects.toThrow('was not issued by')
})

test('a certificate of any authority in ca.crt is accepted', async () => {
  await opened({ ...valid, authority: another.pem + authority.pem })
})

const refused: [string, TlsFiles, RegExp, PeerTlsOptions?][] = [
  [
    'expired',
    await authority.issue(['policy'], { from: days(-2), to: days(-1) }),
    /tls\.crt expired on 20.*: renew/,
  ],
  [
    'not yet valid',
    await authority.issue(['policy'], { from: days(1), to: days(2) }),
    /tls\.crt is not valid before/,
  ],
  [
    'a key of another certificate',
    { ...valid, key: other.key },
    /tls\.key does not fit the certificate in .*tls\.crt/,
  ],
  ['another authority', { ...valid, authority: another.pem }, /tls\.crt was not issued by .* in .*ca\.crt/],
  ['itself as authority', { ...valid, authority: valid.certificate }, /was not issued by/],
  [
    'no service',
    await authority.issue(['localhost']),
    /exactly one of the DNS names gateway, .*DNS:localhost/,
  ],
  ['two services', await authority.issue(['policy', 'pki']), /exactly one of the DNS names/],
  ['another service', valid, /is the certificate of policy, and this process is pki/, { name: 'pki' }],
  [
    'one purpose',
    await authority.issue(['policy'], { purposes: [serverAuth] }),
    /lacks the usage 'client auth'/,
  ],
  ['a text as certificate', { ...valid, certificate: text }, /tls\.crt contains no valid certificate/],
  ['a text as key', { ...valid, key: text }, /tls\.key is not a private key in PEM/],
  ['a text as authority', { ...valid, authority: text }, /ca\.crt contains no valid certificate/],
]
test.each(refused)('a set with %s is refused in one line', async (_what, files, message, options = {}) => {
  const error = await opened(files, options).catch((err: unknown) => err)
  expect(error).toMatchObject({ message: expect.stringMatching(message) })
  expect((error as Error).message).not.toContain('\n')
})

test('a missing file is refused by its name', async () => {
  const { directory } = await opened(valid)
  await rm(join(directory, 'tls.key'))
  await expect(openedAt(directory)).rejects.toThrow(/cannot read .*tls\.key: ENOENT/)
  await expect(openedAt(join(directory, 'missing'))).rejects.toThrow(/cannot read .*tls\.crt: ENOENT/)
})

test('changed files replace the set, and its expiry is reported', async () => {
  const expiries: Date[] = []
  const { directory, certificate } = await opened(valid, { onLoaded: (expires) => expiries.push(expires) })
  await write(directory, other)
  await expect.poll(certificate, { timeout: 30_000 }).toBe(other.certificate)
  expect(expiries.length).toBe(2)
})

test('an unusable set is logged and counted once, and the last valid one stays', async () => {
  let count = 0
  const { directory, certificate, lines } = await opened(valid, { onRefused: () => count++ })
  await writeFile(join(directory, 'tls.key'), other.key)
  await expect.poll(() => count, { timeout: 30_000 }).toBe(1)
  await writeFile(join(directory, 'tls.key'), other.key)
  await writeFile(join(directory, 'tls.crt'), text)
  await expect.poll(() => count, { timeout: 30_000 }).toBe(2)
  expect(certificate()).toBe(valid.certificate)
  expect(lines.map((line) => JSON.parse(line).problem)).toEqual([
    expect.stringContaining('tls.key does not fit'),
    expect.stringContaining('tls.crt contains no valid certificate'),
  ])
  await write(directory, other)
  await expect.poll(certificate, { timeout: 30_000 }).toBe(other.certificate)
})

test('a set that Kubernetes swaps is replaced as a whole', async () => {
  const directory = await newDirectory()
  const mount = async (version: string, files: TlsFiles): Promise<void> => {
    await write(join(directory, version), files)
    await symlink(version, join(directory, '..data_tmp'))
    await rename(join(directory, '..data_tmp'), join(directory, '..data'))
  }
  await mount('..1', valid)
  for (const name of ['tls.crt', 'tls.key', 'ca.crt'])
    await symlink(join('..data', name), join(directory, name))
  const { certificate } = await openedAt(directory)
  await mount('..2', other)
  await expect.poll(certificate, { timeout: 30_000 }).toBe(other.certificate)
})

test('a change that the file system does not report is noticed by polling', async () => {
  const parent = await newDirectory()
  const at = (version: string): string => join(parent, version, 'tls')
  await write(at('now'), valid)
  await write(at('next'), other)
  const { certificate } = await openedAt(at('now'), { pollMs: 10 })
  await rename(join(parent, 'now'), join(parent, 'old')) // the watched directory itself stays as it is
  await rename(join(parent, 'next'), join(parent, 'now'))
  await expect.poll(certificate, { timeout: 30_000 }).toBe(other.certificate)
})
