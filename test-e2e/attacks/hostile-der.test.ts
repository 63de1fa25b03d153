import { createPrivateKey } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { pemOf } from '@overlay/x509'
import { type HostileDer, hostileVariants } from '@overlay/x509/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { type Authority, newAuthority } from '../authority.js'
import { type Answer, type Certificate, type Client, openClient, type Server } from '../client.js'
import { keyAndRequest, type Member } from '../member.js'
import { type Network, startNetwork } from '../network.js'

const api = '/edge/client/v1'
let network: Network
let server: Server
let admin: Admin
let anonymous: Client
let member: Member
let pids: readonly unknown[]
beforeAll(async () => {
  network = await startNetwork()
  server = { addresses: network.gateways, caPem: network.caPem }
  admin = await network.admin()
  anonymous = openClient(server, api)
  member = await admin.enroll({ name: 'member' })
  pids = running()
})
afterAll(() => network[Symbol.asyncDispose]())

const running = () => [...network.processes.values()].map((one) => one.pid())
const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----.*-----/g, ''), 'base64')
const isDoubtless = ({ isSigned, isMalformed }: HostileDer): boolean => isMalformed || !isSigned

/** No process has ended or logged an error. */
async function expectUndisturbed(): Promise<void> {
  expect(running()).toEqual(pids)
  const names = (await readdir(network.home)).filter((name) => name.endsWith('.log'))
  const texts = await Promise.all(names.map((name) => readFile(join(network.home, name), 'utf8')))
  expect(
    texts.flatMap((text) => text.split('\n').filter((line) => line.includes('"level":"error"'))),
  ).toEqual([])
}

/** Sends all, a few at a time. Returns what was not answered as expected. */
async function unexpected(
  variants: readonly HostileDer[],
  send: (variant: HostileDer, i: number) => Promise<Answer | undefined>,
  isExpected: (answer: Answer, variant: HostileDer) => boolean,
): Promise<readonly unknown[]> {
  const odd: unknown[] = []
  const left = [...variants.entries()]
  const work = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [i, variant] = next
      const answer = await send(variant, i)
      if (answer && !isExpected(answer, variant))
        odd.push([variant.what, variant.isSigned, answer.status, answer.body.error])
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  return odd
}

interface Router {
  readonly id: string
  readonly token: string
}
async function newRouter(kind: 'edge-routers' | 'transit-routers'): Promise<Router> {
  const id = await admin.create(kind, { name: `${kind} ${Math.random()}` })
  const { enrollmentToken } = await admin.request<{ enrollmentToken: string }>('GET', `/${kind}/${id}`)
  return { id, token: enrollmentToken }
}

/** Sends one request, or one of two, and gets certificates for good ones. */
type Channel = (csr: string, isFirst?: boolean) => Promise<Answer>

async function routerChannel({ id, token }: Router): Promise<Channel> {
  const { csr: good } = await keyAndRequest(id)
  return (csr, isFirst = true) => {
    const [certCsr, serverCertCsr] = isFirst ? [csr, good] : [good, csr]
    return anonymous.call('POST', `/enroll?token=${token}`, { certCsr, serverCertCsr })
  }
}

/** Replaces the certificates of an enrolled router. */
async function extendingRouter(): Promise<Channel & { readonly id: string }> {
  const { id, token } = await newRouter('edge-routers')
  const { csr: certCsr, key } = await keyAndRequest(id)
  const body = { certCsr, serverCertCsr: certCsr }
  const { cert } = await anonymous.request<{ cert: string }>('POST', `/enroll?token=${token}`, body)
  const client = openClient(server, api, { key, cert })
  const send: Channel = (csr, isFirst = true) => {
    const [one, other] = isFirst ? [csr, certCsr] : [certCsr, csr]
    return client.call('POST', '/enroll/extend/router', { certCsr: one, serverCertCsr: other })
  }
  return Object.assign(send, { id })
}

async function ottToken(): Promise<string> {
  const body = { name: `m ${Math.random()}`, type: 'Device', isAdmin: false, enrollment: { ott: true } }
  const id = await admin.create('identities', body)
  const { enrollment } = await admin.request<{ enrollment: { ott: { token: string } } }>(
    'GET',
    `/identities/${id}`,
  )
  return enrollment.ott.token
}

test('a thousand hostile requests get 400, and the tokens that they were sent with still work', async () => {
  const token = await ottToken()
  const [edge, transit] = [await newRouter('edge-routers'), await newRouter('transit-routers')]
  const extending = await extendingRouter()
  const [own] = await member.request<{ id: string }[]>('GET', '/current-identity/authenticators')
  const channels: readonly { name: string; send: Channel; of: string }[] = [
    { name: 'ott', send: (csr) => anonymous.call('POST', `/enroll?method=ott&token=${token}`, csr), of: 'x' },
    { name: 'erott', send: await routerChannel(edge), of: edge.id },
    { name: 'trott', send: await routerChannel(transit), of: transit.id },
    {
      name: 'extend identity',
      send: (csr) =>
        member.call('POST', `/current-identity/authenticators/${own?.id}/extend`, { clientCertCsr: csr }),
      of: member.id,
    },
    { name: 'extend router', send: extending, of: extending.id },
    {
      name: 'session certificate',
      send: (csr) => member.call('POST', '/current-api-session/certificates', { csr }),
      of: 'x',
    },
  ]
  for (const [seed, { name, send, of }] of channels.entries()) {
    const { csr, key } = await keyAndRequest(of, { names: [{ type: 'dns', value: 'a.example' }] })
    const sample = { der: derOf(csr), key: createPrivateKey(key), digest: 'sha256' }
    const variants = hostileVariants(sample, 260, seed).filter(isDoubtless).slice(0, 170)
    const odd = await unexpected(
      variants,
      ({ der }, i) => send(pemOf(der, 'CERTIFICATE REQUEST'), i % 2 === 0),
      ({ status, body }) => status === 400 && body.error?.code === 'COULD_NOT_PROCESS_CSR',
    )
    expect([name, variants.length, odd]).toEqual([name, 170, []])
    expect([name, (await send(csr)).status]).toEqual([name, name === 'session certificate' ? 201 : 200])
  }
  await expectUndisturbed()
})

/** Certificates that a client can present, which TLS libraries read. */
const isPresentable = (certificate: Certificate): boolean => {
  try {
    createSecureContext(certificate)
    return true
  } catch {
    return false
  }
}

async function newCa(authority: Authority): Promise<string> {
  const flags = { isAuthEnabled: true, isAutoCaEnrollmentEnabled: true, isOttCaEnrollmentEnabled: true }
  const body = { name: `ca ${Math.random()}`, certPem: authority.cert, identityRoles: [], ...flags }
  return admin.create('cas', body)
}

test('hostile certificates are refused by every operation, and authenticate no client', async () => {
  const authority = await newAuthority('factory')
  const [signer, id] = [createPrivateKey(authority.key), await newCa(authority)]
  const variantsOf = (pem: string, count: number, seed: number) =>
    hostileVariants({ der: derOf(pem), key: signer, digest: 'sha256' }, count, seed)
  const isRefused = ({ status }: Answer, variant: HostileDer): boolean =>
    status >= 400 && status < 500 ? true : status < 500 && !isDoubtless(variant)

  const authorities = variantsOf(authority.cert, 200, 11)
  const created = (answer: Answer, { isMalformed }: HostileDer) =>
    answer.status === 400 || answer.status === 409 || (answer.status === 201 && !isMalformed)
  const send = ({ der }: HostileDer, i: number) =>
    admin.call('POST', '/cas', { ...flagsOf(i), certPem: pemOf(der) })
  expect(await unexpected(authorities, send, created)).toEqual([])

  const { verificationToken } = await admin.request<{ verificationToken: string }>('GET', `/cas/${id}`)
  const proof = await authority.certify(verificationToken, { dns: 'a.example' })
  const proofs = variantsOf(proof.cert, 260, 12).filter(isDoubtless)
  const verify = ({ der }: HostileDer) => admin.call('POST', `/cas/${id}/verify`, pemOf(der))
  expect(await unexpected(proofs, verify, ({ status }) => status === 400)).toEqual([])
  await admin.request('POST', `/cas/${id}/verify`, proof.cert)

  const identityId = await admin.create('identities', { name: 'target', type: 'Device', isAdmin: false })
  const { cert, key } = await authority.certify('device', { dns: 'a.example' })
  const leaves = variantsOf(cert, 400, 13)
  const add = ({ der }: HostileDer) =>
    admin.call('POST', '/authenticators', { method: 'cert', identityId, certPem: pemOf(der) })
  expect(await unexpected(leaves.filter(isDoubtless), add, ({ status }) => status === 400)).toEqual([])

  const presented = leaves.filter(({ der }) => isPresentable({ key, cert: pemOf(der) }))
  expect(presented.length).toBeGreaterThan(100)
  expect(presented.map(({ what }) => what)).toEqual(
    expect.arrayContaining(['extension twice', 'absurd date']),
  )
  let answered = 0
  const present = async (path: string, der: Buffer) => {
    using client = openClient(server, api, { key, cert: pemOf(der) })
    const answer = await client.call('POST', path, {}).catch(() => undefined) // refused in the handshake
    if (answer) answered++
    return answer
  }
  const ottca = `/enroll?method=ottca&token=${await ottcaToken(id)}`
  for (const path of ['/authenticate?method=cert', ottca, '/enroll?method=ca']) {
    const sent = path === ottca ? presented.filter(isDoubtless) : presented
    expect([path, await unexpected(sent, ({ der }) => present(path, der), isRefused)]).toEqual([path, []])
  }
  expect(answered).toBeGreaterThan(presented.length)
  expect(await present(ottca, derOf(cert))).toMatchObject({ status: 200 })
  await expectUndisturbed()
})

async function ottcaToken(ca: string): Promise<string> {
  const body = { name: 'by authority', type: 'Device', isAdmin: false, enrollment: { ottca: ca } }
  const id = await admin.create('identities', body)
  const { enrollment } = await admin.request<{ enrollment: { ottca: { token: string } } }>(
    'GET',
    `/identities/${id}`,
  )
  return enrollment.ottca.token
}

const flagsOf = (i: number) => ({
  name: `hostile ${i}`,
  isAuthEnabled: false,
  isAutoCaEnrollmentEnabled: false,
  isOttCaEnrollmentEnabled: false,
  identityRoles: [],
})
