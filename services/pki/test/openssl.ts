import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const generators = {
  'P-256': () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  'P-384': () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  'P-521': () => generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  secp256k1: () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
  'RSA-1024': () => generateKeyPairSync('rsa', { modulusLength: 1024 }),
  'RSA-2048': () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'RSA-3072': () => generateKeyPairSync('rsa', { modulusLength: 3072 }),
  'RSA-4096': () => generateKeyPairSync('rsa', { modulusLength: 4096 }),
  'RSA-e3': () => generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 3 }),
  Ed25519: () => generateKeyPairSync('ed25519'),
}
export type KeyKind = keyof typeof generators

export const newKey = (kind: KeyKind = 'P-256'): string =>
  generators[kind]().privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

/**
 * Runs the command line tool, with files that arguments name by their keys. The answer is its output, or the bytes of the
 * file that it writes, as latin1.
 */
export function openssl(
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
  written?: string,
): string {
  const dir = mkdtempSync(join(tmpdir(), 'pki-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
    const output = execFileSync('openssl', args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
    return written === undefined ? output.toString() : readFileSync(join(dir, written), 'latin1')
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** A certificate request as clients make it. */
export function newCsr(
  subject = '/C=US/O=example/CN=device',
  { key = newKey(), more = [] }: { readonly key?: string; readonly more?: readonly string[] } = {},
): string {
  return openssl(['req', '-new', '-utf8', '-key', 'key', '-subj', subject, ...more], { key })
}

/** What openssl says of a chain: OK, or why not. */
export function verifies(chain: string, bundle: string, purpose: 'sslclient' | 'sslserver'): string {
  const args = ['verify', '-purpose', purpose, '-CAfile', 'bundle', '-untrusted', 'chain', 'chain']
  return openssl(args, { chain, bundle }).trim()
}

export interface Authority {
  readonly key: string
  readonly cert: string
  /** A certificate for this common name, signed with SHA-256. */
  certify(commonName: string, how?: { readonly digest?: string; readonly key?: string }): string
}

/** Somebody else's authority. */
export function newAuthority(commonName = 'factory', key = newKey()): Authority {
  const constraints = ['-addext', 'basicConstraints=critical,CA:TRUE']
  const subject = ['-subj', `/O=example/CN=${commonName}`]
  const cert = openssl(['req', '-x509', '-new', '-key', 'key', ...subject, '-days', '1', ...constraints], {
    key,
  })
  return authorityOf(key, cert)
}

/** Its certificate is signed by `above`. */
export function newIntermediate(
  above: Authority,
  extensions = 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign',
  key = newKey(),
): Authority {
  const csr = newCsr('/O=example/CN=intermediate', { key })
  const signed = ['-CA', 'cert', '-CAkey', 'key', '-CAcreateserial', '-days', '1', '-extfile', 'extensions']
  const files = { csr, cert: above.cert, key: above.key, extensions }
  return authorityOf(key, openssl(['x509', '-req', '-in', 'csr', ...signed], files))
}

function authorityOf(key: string, cert: string): Authority {
  return {
    key,
    cert,
    certify(name, { digest = 'sha256', key: own = newKey() } = {}) {
      const csr = newCsr(`/O=example/CN=${name}`, { key: own })
      const signed = ['-CA', 'cert', '-CAkey', 'key', '-CAcreateserial', '-days', '1', `-${digest}`]
      return openssl(['x509', '-req', '-in', 'csr', ...signed], { csr, cert, key })
    },
  }
}
