import { execFileSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DerError, pemOf } from '@overlay/x509'
import { type HostileDer, hostileVariants } from '@overlay/x509/testing'
import forge from 'node-forge'
import { afterAll, expect, test } from 'vitest'
import { CsrError, readCsr } from '../src/domain/csr.js'
import { type KeyKind, newCsr, newKey } from './openssl.js'

const dir = mkdtempSync(join(tmpdir(), 'fuzz-'))
afterAll(() => rmSync(dir, { recursive: true }))

const more = ['-addext', 'subjectAltName=DNS:a.example,IP:127.0.0.1', '-addext', 'keyUsage=digitalSignature']
const subject = '/C=US/O=example/CN=device'

function variantsOf(kind: KeyKind, digest: string | null, seed: number): readonly HostileDer[] {
  const key = newKey(kind)
  const der = derOf(newCsr(subject, { key, more }))
  const sample = { der, key: createPrivateKey(key), digest }
  return [
    { what: 'as it was', der, isSigned: true, isMalformed: false },
    ...hostileVariants(sample, 130, seed),
  ]
}
const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')

/** Why ours refuses a request, in the words of the rule; undefined: it is read. */
async function refusalOf(der: Buffer): Promise<string | undefined> {
  try {
    await readCsr(pemOf(der, 'CERTIFICATE REQUEST'))
    return undefined
  } catch (err) {
    if (!(err instanceof CsrError)) throw err
    return err.cause instanceof DerError ? err.cause.message : err.message
  }
}

function isReadByForge(der: Buffer): boolean {
  try {
    forge.asn1.fromDer(der.toString('latin1'))
    return true
  } catch {
    return false
  }
}

/** Whether openssl reads each and finds its signature good. One shell runs it for all of them. */
function opensslVerdicts(ders: readonly Buffer[]): readonly boolean[] {
  const requests = join(dir, 'requests')
  mkdirSync(requests, { recursive: true })
  for (const [i, der] of ders.entries()) writeFileSync(join(requests, String(i)), der)
  const loop = `for i in $(seq 0 ${ders.length - 1}); do
    openssl req -verify -noout -inform DER -in "$i" >"$i.out" 2>&1 && grep -q 'verify OK' "$i.out" && echo "$i"
  done; true`
  const verified = execFileSync('sh', ['-c', loop], { cwd: requests }).toString().split('\n')
  rmSync(requests, { recursive: true })
  return ders.map((_, i) => verified.includes(String(i)))
}

/** Rules of ours by which a request is refused although openssl reads it and finds its signature good. */
const stricterThanOpenssl = [
  /^encoding is not canonical$/, // openssl reads BER
  /^not one element$/, // it ignores bytes behind the request, and does not read what extensions contain
  /^not an object id$/, // it reads ids of no bytes
  /^an extension occurs twice$/,
  /^more than one list of extensions$/,
  /^csrPem is longer than 16384 characters$/,
  /^tag \d+ in a name$/, // it reads types that X.509 does not know
  /^tag (\d+|undefined), not \d+$/, // it reads extensions only to print them
]
const isStricter = (rule: string): boolean => stricterThanOpenssl.some((pattern) => pattern.test(rule))

test.each([
  ['P-256', 'sha256', 1],
  ['RSA-2048', 'sha256', 2],
  ['Ed25519', null, 3],
] as const)(
  'whatever is read of requests with a key %s, openssl and forge read too; what openssl reads and is refused breaks a rule',
  async (kind, digest, seed) => {
    const variants = variantsOf(kind, digest, seed)
    const verified = opensslVerdicts(variants.map(({ der }) => der))
    const unexplained: unknown[] = []
    for (const [i, { what, der, isMalformed }] of variants.entries()) {
      const rule = await refusalOf(der)
      const verdicts = [what, rule, verified[i], isReadByForge(der)]
      const isRead = rule === undefined
      if (isRead && (isMalformed || !verified[i] || !isReadByForge(der))) unexplained.push(verdicts)
      if (!isRead && verified[i] && !isStricter(rule)) unexplained.push(verdicts)
    }
    expect(unexplained).toEqual([])
  },
)
