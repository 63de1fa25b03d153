import { createPrivateKey, X509Certificate } from 'node:crypto'
import { fingerprintOfPem, forHours, issueCa, issueLeaf, openSigner } from '@overlay/x509'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readCsr } from '../src/domain/csr.js'
import { readKeyring } from '../src/keys/keyring.js'
import { context, faultOf, keySecret, type Pki, startPki } from './network.js'
import { newCsr, newKey, verifies } from './openssl.js'

let pki: Pki
beforeAll(async () => {
  pki = await startPki()
})
afterAll(() => pki[Symbol.asyncDispose]())

const names = 'DNS:a.example,IP:127.0.0.1,URI:spiffe://x/y,email:a@b.example'
const named = (): string => newCsr('/CN=old', { more: ['-addext', `subjectAltName=${names}`] })
const hours = ({ validFrom, validTo }: X509Certificate): number =>
  (Date.parse(validTo) - Date.parse(validFrom)) / 3_600_000

/** A certificate of this network that has run out. */
async function expired(): Promise<string> {
  const { signer } = await readKeyring(pki.changeLog.db, keySecret, new Date())
  const validity = forHours(1, new Date(Date.now() - 86_400_000))
  return issueLeaf(signer, { ...(await readCsr(named())), role: 'client', validity })
}

test('an extended certificate has the new key and subject, no names, and lasts a year', async () => {
  const key = newKey('P-384')
  const more = ['-addext', 'subjectAltName=DNS:other.example']
  const csrPem = newCsr('/C=US/CN=new', { key, more })
  const { certPem, chainPem, caPem } = await pki.pki.extendCertificate(
    { certPem: await expired(), csrPem },
    context,
  )
  const certificate = new X509Certificate(certPem)
  expect(certificate.checkPrivateKey(createPrivateKey(key))).toBe(true)
  expect(certificate.subject).toBe('C=US\nCN=new')
  expect(certificate.subjectAltName).toBeUndefined()
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']) // for clients alone
  expect(Math.round(hours(certificate) / 24)).toBeOneOf([365, 366])
  expect(verifies(chainPem, caPem, 'sslclient')).toBe('chain: OK')
})

test('only certificates of the network are extended, and that is checked before the request', async () => {
  const stranger = await issueCa({
    privateKey: newKey(),
    commonName: 'overlay signing',
    trustDomain: 'other.example',
    now: new Date(),
  })
  const signer = openSigner(stranger)
  const validity = forHours(1, new Date())
  const certPem = await issueLeaf(signer, { ...(await readCsr(named())), role: 'client', validity })
  expect(await faultOf(pki.pki.extendCertificate({ certPem, csrPem: 'none' }, context))).toEqual([
    'CAN_NOT_UPDATE_AUTHENTICATOR',
    'the certificate is not of an authority of the network',
  ])
})

test('a router gets other certificates with the names that it may have', async () => {
  const more = ['-addext', 'subjectAltName=DNS:r.example,DNS:ctrl.example,URI:spiffe://x/y,email:a@b.example']
  const request = {
    routerId: 'r1',
    routerName: 'berlin',
    csrPem: newCsr('/O=o/CN=r1'),
    serverCsrPem: newCsr('/CN=s', { more }),
  }
  const { certPem, serverCertPem, intermediatesPem, caPem } = await pki.pki.issueRouterCertificates(
    request,
    context,
  )
  expect(verifies(certPem + intermediatesPem, caPem, 'sslclient')).toBe('chain: OK')
  expect(verifies(serverCertPem + intermediatesPem, caPem, 'sslserver')).toBe('chain: OK')
  expect(new X509Certificate(certPem).subject).toBe('O=o\nCN=r1')
  expect(new X509Certificate(serverCertPem)).toMatchObject({
    subject: 'CN=s',
    subjectAltName: 'DNS:r.example, URI:spiffe://x/y, email:a@b.example',
  })
})

test.each([
  ['another common name', { csrPem: newCsr('/CN=r2') }, 'EDGE_ROUTER_ENROLL_COMMON_NAME_INVALID'],
  ['no request', { csrPem: 'none' }, 'COULD_NOT_PROCESS_CSR'],
  ['no request for the server', { serverCsrPem: '' }, 'COULD_NOT_PROCESS_CSR'],
])('a router that sends %s gets no other certificates', async (_what, sent, fault) => {
  const request = {
    routerId: 'r1',
    routerName: 'berlin',
    csrPem: newCsr('/CN=r1'),
    serverCsrPem: newCsr(),
    ...sent,
  }
  expect(await faultOf(pki.pki.issueRouterCertificates(request, context))).toEqual([
    'COULD_NOT_PROCESS_CSR',
    { fault },
  ])
})

test('an extension needs a request', async () => {
  const certPem = await expired()
  expect(await faultOf(pki.pki.extendCertificate({ certPem, csrPem: 'none' }, context))).toEqual([
    'COULD_NOT_PROCESS_CSR',
    'could not decode csrPem as PEM',
  ])
})

test('a session certificate names its session, and lasts twelve hours', async () => {
  const before = Math.floor(Date.now() / 1000) * 1000
  const whose = { id: 'c1', identityId: 'i1', apiSessionId: 's1' }
  const { certPem, chainPem, caPem } = await pki.pki.issueSessionCertificate(
    { ...whose, csrPem: named() },
    context,
  )
  const { pems, trustDomain } = await pki.pki.getTrustBundle({}, context)
  const certificate = new X509Certificate(certPem)
  expect(certificate.subjectAltName).toBe(
    `URI:spiffe://${trustDomain}/identity/i1/apiSession/s1/apiSessionCertificate/c1`,
  )
  expect(hours(certificate)).toBe(12)
  expect(Date.parse(certificate.validFrom)).toBeGreaterThanOrEqual(before)
  expect(verifies(chainPem, caPem, 'sslclient')).toBe('chain: OK')
  expect(chainPem.startsWith(certPem)).toBe(true)
  expect(caPem).toBe(pems.map((pem) => `\n${pem}`).join(''))
  expect(pems.map(fingerprintOfPem)).not.toContain(fingerprintOfPem(certPem))
})
