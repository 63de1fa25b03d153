import { execFileSync } from 'node:child_process'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { forHours, forYears, issueCa, issueLeaf, issueServer, openSigner, uriName } from '@overlay/x509'
import { pino } from 'pino'
import { afterAll, expect, test } from 'vitest'
import { readCsr } from '../src/domain/csr.js'
import { issueRouterCertificates } from '../src/enroll/router-certificates.js'
import { type KeyKind, newCsr, newKey } from './openssl.js'

const dir = mkdtempSync(join(tmpdir(), 'chains-'))
afterAll(() => rmSync(dir, { recursive: true }))

const trustDomain = 'net.example'
const now = new Date()
const kinds = ['RSA-2048', 'RSA-3072', 'RSA-4096', 'P-256', 'P-384', 'P-521', 'Ed25519'] as const
const keys = Object.fromEntries(kinds.map((kind) => [kind, newKey(kind)])) as Record<KeyKind, string>
const names = ['-addext', 'subjectAltName=DNS:r.example,IP:192.0.2.1,URI:urn:x:y,email:a@b.example']
const csrs = new Map(
  kinds.map((kind) => [kind, newCsr('/C=US/O=example/CN=r1', { key: keys[kind], more: names })]),
)

/** What openssl finds wrong with these chains, all in one run. */
function objections(purpose: 'sslclient' | 'sslserver', pems: ReadonlyMap<string, string>): string {
  for (const [name, pem] of pems) writeFileSync(join(dir, name), pem)
  const args = ['-x509_strict', '-purpose', purpose, '-CAfile', 'root', '-untrusted', 'signing']
  const verified = execFileSync('openssl', ['verify', ...args, ...pems.keys()], { cwd: dir, stdio: 'pipe' })
  return verified.toString().replace(/^.*: OK\n/gm, '')
}

test.each(['RSA-2048', 'P-256', 'P-384'] as const)(
  'openssl verifies what an authority with a key %s issues, for all kinds of keys',
  async (kind) => {
    const ca = { trustDomain, now }
    const root = await issueCa({ ...ca, privateKey: keys[kind], commonName: 'root' })
    const signing = await issueCa({
      ...ca,
      privateKey: newKey(kind),
      commonName: 'signing',
      signer: openSigner(root),
    })
    writeFileSync(join(dir, 'root'), root.pem)
    writeFileSync(join(dir, 'signing'), signing.pem)
    const signer = openSigner(signing)
    const server = {
      pem: '',
      privateKey: '',
      key: createPrivateKey(keys[kind]),
      chain: '',
      keyId: '',
      hosts: ['localhost'],
    }
    const [clients, servers] = [new Map<string, string>(), new Map<string, string>()]
    for (const [of, pem] of csrs) {
      const csr = await readCsr(pem)
      const client = { ...csr, role: 'client' as const }
      // one-time enrollment and its extension, then the certificate of an API session
      clients.set(
        `identity ${of}`,
        await issueLeaf(signer, { ...client, altNames: [], validity: forYears(1, now) }),
      )
      const session = uriName(`spiffe://${trustDomain}/identity/i1/apiSession/s1/apiSessionCertificate/c1`)
      const hours = { ...client, altNames: [session], validity: forHours(12, new Date()) }
      clients.set(`session ${of}`, await issueLeaf(signer, hours))
      // routers of both kinds, and their extension
      const naming = {
        addresses: ['localhost:1280'],
        patterns: [],
        log: pino({ enabled: false }),
        now: () => now,
      }
      const requests = { routerId: 'r1', name: undefined, client: csr, server: csr }
      const router = await issueRouterCertificates(
        { signer, trustDomain, server },
        naming,
        requests,
        new Set(),
      )
      clients.set(`router ${of}`, router.certPem)
      servers.set(`router server ${of}`, router.serverCertPem)
      const { pem: own } = await issueServer(signer, {
        privateKey: keys[of],
        hosts: ['localhost', '::1'],
        now,
      })
      clients.set(`server as client ${of}`, own)
      servers.set(`server ${of}`, own)
    }
    expect([clients.size, servers.size]).toEqual([28, 14])
    expect([objections('sslclient', clients), objections('sslserver', servers)]).toEqual(['', ''])
  },
)
