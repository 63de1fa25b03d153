import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:tls'
import { freePort } from '@overlay/launcher/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { newAuthority } from '../authority.js'
import { type Certificate, type Client, openClient, type Server } from '../client.js'
import { keyAndRequest } from '../member.js'
import { type Network, startNetwork } from '../network.js'

const host = 'controller.example.org'

let network: Network
let server: Server
let admin: Admin
let anonymous: Client
beforeAll(async () => {
  const port = await freePort()
  const env = { OVERLAY_ADDRESS: `${host}:${port}`, OVERLAY_LISTEN: `127.0.0.1:${port}` }
  network = await startNetwork({ env })
  server = { addresses: network.gateways, caPem: network.caPem }
  admin = await network.admin(...network.gateways)
  anonymous = openClient(server, '/edge/client/v1')
})
afterAll(() => network[Symbol.asyncDispose]())

interface Router {
  readonly id: string
  readonly enrollmentToken: string | null
}
const newRouter = async (more: object = {}): Promise<Router> => {
  const id = await admin.create('edge-routers', { name: `router ${Math.random()}`, ...more })
  return admin.request('GET', `/edge-routers/${id}`)
}

/** The result of a client that trusts the network's authorities for a server with this certificate. */
async function verdictOn(certificate: Certificate): Promise<string> {
  const impostor = createServer(certificate, (socket) => socket.on('error', () => undefined))
  impostor.on('tlsClientError', () => undefined)
  impostor.listen(0, '127.0.0.1')
  await once(impostor, 'listening')
  try {
    return await verdictAt((impostor.address() as AddressInfo).port)
  } finally {
    impostor.close()
  }
}

function verdictAt(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', servername: host, ca: network.caPem }, () => {
      socket.destroy()
      resolve('trusted')
    })
    socket.on('error', (err: NodeJS.ErrnoException) => resolve(err.code ?? err.message))
  })
}

test('a router cannot impersonate a gateway, whatever it requests', async () => {
  const [gateway = ''] = network.gateways
  expect(await verdictAt(Number(gateway.split(':').at(-1)))).toBe('trusted')

  const { id, enrollmentToken } = await newRouter()
  const [, trustDomain] = /URI:(spiffe:\/\/[^/,]+)/.exec(
    new X509Certificate(network.caPem).subjectAltName ?? '',
  ) ?? ['', 'none']
  const names = [
    { type: 'dns' as const, value: host },
    { type: 'dns' as const, value: `*.${host.split('.').slice(1).join('.')}` },
    { type: 'dns' as const, value: 'localhost' },
    { type: 'ip' as const, value: '127.0.0.1' },
    { type: 'url' as const, value: `${trustDomain}/identity/i1/apiSession/s1` },
    { type: 'url' as const, value: 'spiffe://x/controller/c1' },
  ]
  const [client, request] = [await keyAndRequest(id), await keyAndRequest(host, { names })]
  const body = { certCsr: client.csr, serverCertCsr: request.csr }
  const issued = await anonymous.request<{ serverCert: string }>(
    'POST',
    `/enroll?token=${enrollmentToken}`,
    body,
  )
  expect(await verdictOn({ key: request.key, cert: issued.serverCert })).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  const { subject, subjectAltName } = new X509Certificate(issued.serverCert)
  expect(subject).toBe(`CN=${id}`)
  expect(trustDomain).not.toBe('none')
  expect(subjectAltName).toBe('DNS:localhost, IP Address:127.0.0.1, URI:spiffe://x/controller/c1')
})

test('a router cannot impersonate another one, whatever it requests', async () => {
  const enroll = async (...hosts: string[]) => {
    const { id, enrollmentToken } = await newRouter()
    const names = hosts.map((value) => ({ type: 'dns' as const, value }))
    const [client, request] = [
      await keyAndRequest(id, { names }),
      await keyAndRequest(hosts[0] ?? id, { names }),
    ]
    const body = { certCsr: client.csr, serverCertCsr: request.csr }
    const path = `/enroll?token=${enrollmentToken}`
    const { serverCert } = await anonymous.request<{ serverCert: string }>('POST', path, body)
    return new X509Certificate(serverCert).subjectAltName
  }
  expect(await enroll('victim.example', 'localhost')).toBe('DNS:victim.example, DNS:localhost')
  expect(await enroll('VICTIM.example.', '*.example', 'other.example')).toBe('DNS:other.example')
})

test('the certificate of an identity is not valid for servers', async () => {
  const member = await keyAndRequest(host, { names: [{ type: 'dns', value: host }] })
  const cert = await anonymous.request<{ cert: string }>(
    'POST',
    `/enroll?token=${await ottToken()}`,
    member.csr,
  )
  expect(await verdictOn({ key: member.key, cert: cert.cert })).toBe('INVALID_PURPOSE')
})

test('a request with a weak key is refused, and its token stays valid', async () => {
  const token = await ottToken()
  const weak = {
    name: 'RSASSA-PKCS1-v1_5',
    hash: 'SHA-256',
    modulusLength: 2048,
    publicExponent: new Uint8Array([3]),
  }
  const enroll = async (csr: string) => (await anonymous.call('POST', `/enroll?token=${token}`, csr)).status
  expect(await enroll((await keyAndRequest('x', { kind: weak })).csr)).toBe(400)
  expect(await enroll((await keyAndRequest('x')).csr)).toBe(200)
})

test('a megabyte of PEM headers is refused as no certificate', async () => {
  const { cert: certPem } = await newAuthority('factory')
  const flags = { isAuthEnabled: true, isAutoCaEnrollmentEnabled: true, isOttCaEnrollmentEnabled: true }
  const id = await admin.create('cas', { name: 'factory', certPem, identityRoles: [], ...flags })
  const { status, body } = await admin.call('POST', `/cas/${id}/verify`, '-----BEGIN A-----\n'.repeat(58_000))
  expect([status, body.error?.code]).toEqual([400, 'COULD_NOT_PARSE_BODY'])
})

test('a router whose tunneler is turned off keeps its enrollment', async () => {
  const { id, enrollmentToken } = await newRouter({ isTunnelerEnabled: true })
  expect((await admin.request<Router>('GET', `/edge-routers/${id}`)).enrollmentToken).toBe(enrollmentToken)
  const other = await newMember()
  await admin.request('PATCH', `/edge-routers/${id}`, { isTunnelerEnabled: false })
  const statusOf = async (path: string) => (await admin.call('GET', path)).status
  await expect.poll(() => statusOf(`/identities/${id}`)).toBe(404)
  // pki follows deletions in order, so a later deletion proves that the earlier one was followed
  await admin.request('DELETE', `/identities/${other.id}`)
  await expect.poll(() => statusOf(`/enrollments/${other.enrollment.ott.id}`)).toBe(404)
  const { csr } = await keyAndRequest(id)
  const body = { certCsr: csr, serverCertCsr: csr }
  expect((await anonymous.call('POST', `/enroll?token=${enrollmentToken}`, body)).status).toBe(200)
})

interface Member {
  readonly id: string
  readonly enrollment: { readonly ott: { readonly id: string; readonly token: string } }
}
async function newMember(): Promise<Member> {
  const body = { name: `member ${Math.random()}`, type: 'Device', isAdmin: false, enrollment: { ott: true } }
  return admin.request('GET', `/identities/${await admin.create('identities', body)}`)
}
const ottToken = async (): Promise<string> => (await newMember()).enrollment.ott.token
