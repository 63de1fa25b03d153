import { type Entity, kinds, writableMembers } from '@overlay/model'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import { type Admin, logInAsAdmin } from '../admin.js'
import { newAuthority } from '../authority.js'
import { type Client, openClient } from '../client.js'
import { type Network, networkAdmin, startNetwork } from '../network.js'
import { samples } from './samples.js'

// What the API returns can be sent back: as a replace, as a patch, and as another entity.

let network: Network
let admin: Admin
let fabric: Client
beforeAll(async () => {
  network = await startNetwork({ shared: true })
  const server = { addresses: [network.address], caPem: network.caPem }
  admin = await logInAsAdmin(server, networkAdmin)
  using client = openClient(server, '/edge/management/v1')
  const { token } = await client.request<{ token: string }>(
    'POST',
    '/authenticate?method=password',
    networkAdmin,
  )
  fabric = openClient(server, '/fabric/v1')
  fabric.use(token)
})
afterAll(async () => {
  fabric[Symbol.dispose]()
  await network[Symbol.asyncDispose]()
})

type Row = Readonly<Record<string, unknown>>
type Make = (admin: Admin, name: string) => Promise<object>

const mounted = (operation: string): boolean => operation in management
const posture =
  (members: object): Make =>
  async (_, name) => ({ name, ...members })
const identity = { type: 'Device', isAdmin: false }
const process = { osType: 'Linux', path: '/usr/bin/x' }
const word = 'ab'.repeat(20)

/** Forms of entities that the samples do not have. */
const more: readonly (readonly [kind: string, form: string, make: Make])[] = [
  [
    'posture-checks',
    'of systems',
    posture({
      typeId: 'OS',
      operatingSystems: [
        { type: 'Linux', versions: null },
        { type: 'Windows', versions: ['>=10.0.0'] },
        { type: 'macOS', versions: [] },
      ],
    }),
  ],
  ['posture-checks', 'of addresses', posture({ typeId: 'MAC', macAddresses: ['00:11:22:33:44:55'] })],
  ['posture-checks', 'of a second factor', posture({ typeId: 'MFA' })],
  [
    'posture-checks',
    'of a second factor, with all members',
    posture({ typeId: 'MFA', timeoutSeconds: 60, promptOnWake: true, ignoreLegacyEndpoints: true }),
  ],
  ['posture-checks', 'of a process', posture({ typeId: 'PROCESS', process })],
  [
    'posture-checks',
    'of a process, with hashes',
    posture({ typeId: 'PROCESS', process: { ...process, hashes: [word], signerFingerprint: word } }),
  ],
  [
    'posture-checks',
    'of processes',
    posture({
      typeId: 'PROCESS_MULTI',
      semantic: 'AnyOf',
      processes: [process, { ...process, osType: 'Windows', hashes: [word], signerFingerprints: [word] }],
    }),
  ],
  ['identities', 'with an enrollment', async (_, name) => ({ name, ...identity, enrollment: { ott: true } })],
  [
    'identities',
    'with an enrollment by password',
    async (_, name) => ({ name, ...identity, enrollment: { updb: `user-${name}` } }),
  ],
  [
    'identities',
    'with all members',
    async (creator, name) => {
      const service = await creator.create('services', { name: `${name}-service`, encryptionRequired: true })
      return {
        ...{ name, type: 'User', isAdmin: true, externalId: null, tags: { a: null, b: 1 } },
        ...{ appData: { a: [{}] }, serviceHostingCosts: { [service]: 3 } },
      }
    },
  ],
  [
    'edge-routers',
    'with a tunneler',
    async (_, name) => ({ name, isTunnelerEnabled: true, appData: { a: {} } }),
  ],
  [
    'services',
    'with configs',
    async (creator, name) => {
      const config = await samples.configs?.(creator, `${name}-config`)
      const id = await creator.create('configs', config as object)
      return { name, encryptionRequired: false, configs: [id], roleAttributes: ['a'] }
    },
  ],
  [
    'external-jwt-signers',
    'with published keys',
    async (_, name) => ({
      ...{ name, enabled: true, issuer: `https://${name}.example`, audience: 'network' },
      ...{ jwksEndpoint: `https://${name}.example/keys`, externalAuthUrl: `https://${name}.example` },
    }),
  ],
  [
    'auth-policies',
    'with signers',
    async (creator, name) => {
      const signer = await samples['external-jwt-signers']?.(creator, `${name}-signer`)
      const id = await creator.create('external-jwt-signers', signer as object)
      const policy = (await samples['auth-policies']?.(creator, name)) as { primary: object }
      const primary = { ...policy.primary, extJwt: { allowed: true, allowedSigners: [id] } }
      return { ...policy, primary, secondary: { requireTotp: true, requireExtJwtSigner: id } }
    },
  ],
  [
    'service-policies',
    'with ids',
    async (creator, name) => {
      const id = await creator.create('identities', { name: `${name}-identity`, ...identity })
      return { name, type: 'Dial', semantic: 'AnyOf', identityRoles: [`@${id}`, '#a'], serviceRoles: [] }
    },
  ],
]
const forms = [
  ...Object.entries(samples).map(([kind, make]) => [kind, 'as the sample', make] as const),
  ...more,
]

/** Members that another entity needs of its own, and those that answers do not have. */
const own: Readonly<Record<string, (creator: Admin, name: string, detail: Row) => Promise<object>>> = {
  authenticators: async (creator, name) => ({
    identityId: await creator.create('identities', { name: `${name}-of`, ...identity }),
    username: name,
    password: 'correct horse',
  }),
  cas: async (_, name) => ({ certPem: (await newAuthority(name)).cert }),
  enrollments: async (creator, name) => ({
    identityId: await creator.create('identities', { name: `${name}-of`, ...identity }),
  }),
  'external-jwt-signers': async (_, name, { certPem }) => ({
    issuer: `https://${name}.example`,
    ...(certPem !== null && { certPem: (await newAuthority(name)).cert }),
  }),
}

/** What no two entities have in common, or what follows from members of their own. */
const different = new Set([
  ...['id', '_links', 'createdAt', 'updatedAt', 'name', 'verificationToken', 'enrollment', 'token', 'jwt'],
  ...['enrollmentToken', 'enrollmentJwt', 'enrollmentCreatedAt', 'enrollmentExpiresAt', 'fingerprint'],
  ...['identity', 'identityId', 'username', 'certPem', 'issuer', 'commonName', 'notBefore', 'notAfter'],
])
const common = (row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !different.has(name)))

/** A patch of a member that is null, or that only a create writes, has nothing to set. */
const setsNothing = (entity: Entity, name: string, value: unknown): boolean =>
  value === null ||
  (writableMembers(entity, 'create').includes(name) && !writableMembers(entity, 'patch').includes(name))

describe.each(forms)('%s %s', (kind, form, make) => {
  const entity = kinds.get(kind)
  if (!entity) throw new Error(`no kind ${kind}`)
  const nameOf = (what: string): string => `${what}-${kind}-${forms.findIndex((one) => one[2] === make)}`
  const create = async (what: string) => {
    const id = await admin.create(kind, await make(admin, nameOf(what)))
    return { id, path: `/${kind}/${id}`, detail: await get(`/${kind}/${id}`) }
  }
  const get = (path: string) => admin.request<Row>('GET', path)
  const outcome = async (method: string, path: string, body: object) => {
    const { status, body: answer } = await admin.call(method, path, body)
    return [status, answer.error?.cause]
  }
  const secrets = kind === 'authenticators' ? { password: 'correct horse' } : {}

  test('can be sent back by a replace', async () => {
    if (!mounted(`PUT /${kind}/{id}`)) return
    const { path, detail } = await create('replaced')
    expect(await outcome('PUT', path, { ...detail, ...secrets })).toEqual([200, undefined])
    expect(common(await get(path))).toEqual(common(detail))
  })

  test('can be sent back by a patch, whole and by each member', async () => {
    if (!mounted(`PATCH /${kind}/{id}`)) return
    const { path, detail } = await create('patched')
    expect(await outcome('PATCH', path, detail)).toEqual([200, undefined])
    const { by } = entity.variants ?? {}
    for (const [name, value] of Object.entries(detail)) {
      const discriminant = by === undefined || by === name ? {} : { [by]: detail[by] }
      const sent = { ...discriminant, [name]: value }
      const isRefused = by === undefined && setsNothing(entity, name, value)
      expect([name, ...(await outcome('PATCH', path, sent))]).toEqual([
        name,
        ...(isRefused ? [400, { code: 'UNHANDLED', message: 'no fields to update' }] : [200, undefined]),
      ])
    }
    expect(common(await get(path))).toEqual(common(detail))
  })

  test('can be sent back as another entity', async () => {
    const { detail } = await create('copied')
    const members = { name: nameOf('copy'), ...(await own[kind]?.(admin, nameOf('copy'), detail)) }
    const { status, body } = await admin.call('POST', `/${kind}`, { ...detail, ...members })
    expect([form, status, body.error?.cause]).toEqual([form, 201, undefined])
    const { id } = body.data as { id: string }
    expect(common(await get(`/${kind}/${id}`))).toEqual(common(detail))
  })
})

describe.each(['routers', 'services', 'terminators'])('%s of the fabric API', (kind) => {
  const shared = kind === 'routers' ? 'transit-routers' : kind
  const get = (id: string) => fabric.request<Row>('GET', `/${kind}/${id}`)

  test('can be sent back', async () => {
    const id = await admin.create(shared, (await samples[shared]?.(admin, `fabric-${kind}`)) as object)
    const detail = await get(id)
    for (const method of ['PUT', 'PATCH'])
      expect([method, (await fabric.call(method, `/${kind}/${id}`, detail)).status]).toEqual([method, 200])
    expect(common(await get(id))).toEqual(common(detail))
    const another = { ...detail, name: `fabric-copy-${kind}`, ...(kind === 'routers' && { id: 'copied' }) }
    const { status, body } = await fabric.call('POST', `/${kind}`, another)
    expect([status, body.error?.cause]).toEqual([201, undefined])
    expect(common(await get((body.data as { id: string }).id))).toEqual(common(detail))
  })
})
