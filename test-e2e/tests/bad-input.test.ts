import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Admin } from '../admin.js'
import { openClient } from '../client.js'
import { keyAndRequest } from '../member.js'
import { type Network, startNetwork } from '../network.js'

let network: Network
let admin: Admin
let pids: number[]
const running = () => [...network.processes.values()].map((process_) => process_.pid())

beforeAll(async () => {
  network = await startNetwork()
  admin = await network.admin()
  pids = running()
})
afterAll(() => network[Symbol.asyncDispose]())

/** The answer to these bytes. */
async function answerTo(address: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(`tcp://${address}`)
  const socket = connect(Number(port), hostname)
  socket.write(bytes)
  return text(socket).catch((err: NodeJS.ErrnoException) => err.code ?? '')
}

const logOf = (process_: string): Promise<string> => readFile(join(network.home, `${process_}.log`), 'utf8')

test.each([
  ['gateway', () => network.address],
  ['sessions', () => network.ctrlAddress],
])(
  'plain HTTP and a PROXY header at the port of %s are refused, and the log says why',
  async (name, port) => {
    expect(await answerTo(port(), 'GET / HTTP/1.1\r\nhost: x\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 [\s\S]*speaks TLS/,
    )
    expect(await answerTo(port(), 'PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n')).not.toMatch(/HTTP/)
    for (const detail of ['plain HTTP: ', 'which OVERLAY_PROXY_PROTOCOL_FROM does not list'])
      await expect.poll(() => logOf(name)).toContain(detail)
  },
)

const good = { name: 'x', encryptionRequired: true }

test.each([
  ['an object in place of a text', { ...good, name: { a: 1 } }, 'COULD_NOT_PARSE_BODY'],
  ['a list in place of an object', [], 'COULD_NOT_PARSE_BODY'],
  ['a missing member', { name: 'x' }, 'COULD_NOT_VALIDATE'],
  ['an empty name', { ...good, name: '' }, 'COULD_NOT_VALIDATE'],
  ['an attribute that looks like a role', { ...good, roleAttributes: ['#a'] }, 'COULD_NOT_VALIDATE'],
  ['an empty attribute', { ...good, roleAttributes: [''] }, 'COULD_NOT_VALIDATE'],
  ['another type than JSON', 'name: x', 'COULD_NOT_VALIDATE'],
  ['ten megabytes', { ...good, name: 'x'.repeat(10 << 20) }, 'COULD_NOT_READ_BODY'],
])('%s is refused with its code, and nothing changes', async (_what, body, code) => {
  // the connection may close during a body that is too large, before the answer is read
  const answer = await admin.call('POST', '/services', body).catch(() => undefined)
  if (answer) expect([answer.status, answer.body.error?.code]).toEqual([400, code])
  else expect(code).toBe('COULD_NOT_READ_BODY')
  expect(await admin.request('GET', '/services')).toEqual([])
  expect(running()).toEqual(pids)
})

test('unknown members are ignored', async () => {
  const id = await admin.create('services', { ...good, name: 'known', nonsense: { deep: [1] } })
  expect(await admin.request('GET', `/services/${id}`)).not.toHaveProperty('nonsense')
  await admin.request('DELETE', `/services/${id}`)
})

test.each(['lockoutDurationMinutes', 'maxAttempts', 'minPasswordLength'])(
  'a %s that its column does not hold is refused, also by a patch',
  async (member) => {
    const updb = {
      allowed: true,
      lockoutDurationMinutes: 0,
      maxAttempts: 0,
      minPasswordLength: 5,
      requireMixedCase: false,
      requireNumberChar: false,
      requireSpecialChar: false,
    }
    const policy = (name: string, value: number) => ({
      name,
      primary: {
        cert: { allowed: true, allowExpiredCerts: true },
        extJwt: { allowed: false, allowedSigners: [] },
        updb: { ...updb, [member]: value },
      },
      secondary: { requireTotp: false, requireExtJwtSigner: null },
    })
    const id = await admin.create('auth-policies', policy(`largest ${member}`, 2 ** 31 - 1))
    for (const value of [2 ** 31, -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER]) {
      const body = policy(`larger ${member}`, value)
      for (const [method, path] of [
        ['POST', '/auth-policies'],
        ['PUT', `/auth-policies/${id}`],
        ['PATCH', `/auth-policies/${id}`],
      ] as const) {
        const answer = await admin.call(method, path, body)
        expect([answer.status, answer.body.error?.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
      }
    }
  },
)

async function newToken(name: string): Promise<{ id: string; token: string }> {
  const id = await admin.create('identities', {
    name,
    type: 'Device',
    isAdmin: false,
    enrollment: { ott: true },
  })
  const { enrollment } = await admin.request<{ enrollment: { ott: { token: string } } }>(
    'GET',
    `/identities/${id}`,
  )
  return { id, token: enrollment.ott.token }
}

const enrollWith = (token: string, csr: string) =>
  openClient({ addresses: [network.address], caPem: network.caPem }, '/edge/client/v1').call(
    'POST',
    `/enroll?method=ott&token=${token}`,
    csr,
  )

test('broken certificate requests are refused and do not consume the token', async () => {
  const { token } = await newToken('broken')
  const { csr } = await keyAndRequest()
  const body = csr.split('\n').slice(1, -2).join('')
  const flipped = `${body.slice(0, 200)}${body[200] === 'A' ? 'B' : 'A'}${body.slice(201)}`
  const pem = (text: string) =>
    `-----BEGIN CERTIFICATE REQUEST-----\n${text}\n-----END CERTIFICATE REQUEST-----\n`
  for (const broken of ['nonsense', pem(''), pem('AAAA'), pem(body.slice(0, 100)), pem(flipped), csr + csr]) {
    const answer = await enrollWith(token, broken)
    expect([answer.status, answer.body.error?.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
  }
  expect((await enrollWith(token, csr)).status).toBe(200)
  expect(running()).toEqual(pids)
})

test('of four simultaneous uses of one token, one enrolls', async () => {
  const { id, token } = await newToken('wanted')
  const requests = await Promise.all([1, 2, 3, 4].map(() => keyAndRequest()))
  const answers = await Promise.all(requests.map(({ csr }) => enrollWith(token, csr)))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
  const refused = answers.filter(({ status }) => status === 400)
  expect(new Set(refused.map(({ body }) => body.error?.code))).toEqual(new Set(['INVALID_ENROLLMENT_TOKEN']))
  expect(await admin.request<object[]>('GET', `/identities/${id}/authenticators`)).toHaveLength(1)
  expect((await enrollWith(token, requests[0]?.csr ?? '')).status).toBe(400)
})
