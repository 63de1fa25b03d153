import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Answer, openClient } from '../client.js'
import { type Fixture, inAnHour, invalid, password, startFixture } from '../fixture.js'

// Every operation that sets a user name or a password, times the rules for them. services/identity/test has the commands.

let fixture: Fixture
const policies = new Map<string, string>()
beforeAll(async () => {
  fixture = await startFixture({ shared: true })
  for (const [rule, updb] of [...passwordRules, ...nameRules])
    policies.set(rule, await fixture.makeAuthPolicy(updb))
  policies.set(
    'all',
    await fixture.makeAuthPolicy(Object.assign({}, ...passwordRules.map(([, updb]) => updb))),
  )
})
afterAll(() => fixture[Symbol.asyncDispose]())

type Rule = readonly [rule: string, updb: object, broken: string]

const passwordRules: readonly Rule[] = [
  ['less than 5 characters', {}, 'Ab-1'],
  ['more than 100 characters', {}, `Aa-1${'é'.repeat(97)}`],
  ['less than the policy demands', { minPasswordLength: 12 }, 'Just-11-let'],
  ['no upper case letter', { requireMixedCase: true }, 'only-lower-1'],
  ['no lower case letter', { requireMixedCase: true }, 'ONLY-UPPER-1'],
  ['no digit', { requireNumberChar: true }, 'No-digit-here'],
  ['no special character', { requireSpecialChar: true }, 'Nothing5pecial'],
]
const nameRules: readonly Rule[] = [
  ['a name of less than 4 characters', {}, 'abc'],
  ['a name of more than 100 characters', {}, 'é'.repeat(101)],
]
const sound = 'Long and with 1 digit'

type Change = Readonly<{ username?: string; password?: string }>

/** An identity, and what sets its user name or password. */
interface Place {
  readonly identityId: string
  set(change: Change): Promise<Answer>
}

async function create(): Promise<Place> {
  const { admin, createSample, newName } = fixture
  const identityId = await createSample('identities')
  const credentials = { method: 'updb', identityId, username: `user-${newName()}`, password: sound }
  return { identityId, set: (change) => admin.call('POST', '/authenticators', { ...credentials, ...change }) }
}

const update = (method: 'PUT' | 'PATCH') => async (): Promise<Place> => {
  const { id: identityId, authenticatorId, username } = await fixture.createUser()
  const all = method === 'PUT' ? { username, password: sound } : {}
  const path = `/authenticators/${authenticatorId}`
  return { identityId, set: (change) => fixture.admin.call(method, path, { ...all, ...change }) }
}

const updateOwn = (api: 'client' | 'management', method: 'PUT' | 'PATCH') => async (): Promise<Place> => {
  const { createUser, logIn, server } = fixture
  const { id: identityId, authenticatorId, username } = await createUser()
  const self = openClient(server, `/edge/${api}/v1`)
  self.use(((await logIn(username)).body.data as { token: string }).token)
  const all = { currentPassword: password, ...(method === 'PUT' && { username, password: sound }) }
  const path = `/current-identity/authenticators/${authenticatorId}`
  return { identityId, set: (change) => self.call(method, path, { ...all, ...change }) }
}

const enroll = (path: string, identityWithEnrollment: () => Promise<string>) => async (): Promise<Place> => {
  const identityId = await identityWithEnrollment()
  const { enrollment } = await fixture.admin.request<Enrolling>('GET', `/identities/${identityId}`)
  const to = `${path}token=${enrollment.updb.token}`
  return {
    identityId,
    set: (change) => fixture.anonymous.call('POST', to, { username: 'ignored', ...change }),
  }
}

interface Enrolling {
  readonly enrollment: { readonly updb: { readonly token: string } }
}

const newIdentity = () =>
  fixture.createSample('identities', { enrollment: { updb: `user-${fixture.newName()}` } })

async function reEnrolled(): Promise<string> {
  const { id, authenticatorId } = await fixture.createUser()
  const path = `/authenticators/${authenticatorId}/re-enroll`
  await fixture.admin.request('POST', path, { expiresAt: inAnHour() })
  return id
}

const updates: Readonly<Record<string, () => Promise<Place>>> = {
  'management POST /authenticators': create,
  'management PUT /authenticators/{id}': update('PUT'),
  'management PATCH /authenticators/{id}': update('PATCH'),
  'management PUT /current-identity/authenticators/{id}': updateOwn('management', 'PUT'),
  'management PATCH /current-identity/authenticators/{id}': updateOwn('management', 'PATCH'),
  'client PUT /current-identity/authenticators/{id}': updateOwn('client', 'PUT'),
  'client PATCH /current-identity/authenticators/{id}': updateOwn('client', 'PATCH'),
}
const enrollments: Readonly<Record<string, () => Promise<Place>>> = {
  'client POST /enroll': enroll('/enroll?method=updb&', newIdentity),
  'client POST /enroll/updb': enroll('/enroll/updb?', newIdentity),
  'client POST /enroll/updb, after a re-enrollment': enroll('/enroll/updb?', reEnrolled),
}
/** Their user names wait for an enrollment. */
const nameSetters: Readonly<Record<string, () => Promise<Place>>> = {
  'management POST /identities': async () => {
    const body = await fixture.sampleOf('identities')
    const path = '/identities'
    return {
      identityId: await fixture.createSample('identities'),
      set: ({ username }) => fixture.admin.call('POST', path, { ...body, enrollment: { updb: username } }),
    }
  },
  'management POST /enrollments': async () => {
    const identityId = await fixture.createSample('identities')
    const body = { method: 'updb', identityId, expiresAt: inAnHour() }
    return { identityId, set: (change) => fixture.admin.call('POST', '/enrollments', { ...body, ...change }) }
  },
}

test.each(Object.entries({ ...updates, ...enrollments }))(
  '%s refuses passwords that break a rule',
  async (_operation, open) => {
    const place = await open()
    for (const [rule, , broken] of passwordRules)
      expect([rule, await answerAt(place, rule, { password: broken })]).toEqual([rule, invalid('password')])
    expect(await answerAt(place, 'all', { password: sound })).toEqual([expect.toSatisfy(isSuccess)])
  },
)

test.each(Object.entries({ ...updates, ...nameSetters }))(
  '%s refuses user names that break a rule',
  async (_operation, open) => {
    const place = await open()
    for (const [rule, , broken] of nameRules) {
      const [status, code, field] = await answerAt(place, rule, { username: broken })
      expect([rule, status, code, field]).toEqual([rule, ...invalid(expect.stringMatching(/username|updb/))])
    }
    const username = `user-${fixture.newName()}`
    expect(await answerAt(place, 'all', { username })).toEqual([expect.toSatisfy(isSuccess)])
  },
)

const isSuccess = (status: number): boolean => status < 300

async function answerAt({ identityId, set }: Place, rule: string, change: Change): Promise<unknown[]> {
  await fixture.admin.request('PATCH', `/identities/${identityId}`, { authPolicyId: policies.get(rule) })
  const { status, body } = await set(change)
  if (!body.error) return [status]
  return [status, body.error.code, (body.error.cause as { field?: string } | undefined)?.field]
}

/** Operations that take a user name or a password and do not set it. */
const others = ['client POST /authenticate', 'management POST /authenticate']

test('no other operation of the documents takes a user name or a password', async () => {
  const taking: string[] = []
  for (const api of ['client', 'management'] as const) {
    using client = openClient(fixture.server, '')
    const path = `/edge/${api}/v1/specs/edge-${api}/spec?version=3`
    const document = (await client.call('GET', path)).body as unknown as OpenApi
    for (const [path, methods] of Object.entries(document.paths))
      for (const [method, { requestBody }] of Object.entries(methods))
        if (mentionsCredential(requestBody, document.components.schemas))
          taking.push(`${api} ${method.toUpperCase()} ${path}`)
  }
  const tested = Object.keys({ ...updates, ...enrollments, ...nameSetters }).filter(
    (name) => !name.includes(','),
  )
  expect(taking.sort()).toEqual([...tested, ...others].sort())
})

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody?: object }>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

/** Whether the schema, or one that it refers to, has a text member with one of these names. */
function mentionsCredential(schema: unknown, schemas: OpenApi['components']['schemas']): boolean {
  const seen = new Set<unknown>()
  const visit = (part: unknown): boolean => {
    if (typeof part !== 'object' || part === null || seen.has(part)) return false
    seen.add(part)
    const { $ref } = part as { $ref?: string }
    if ($ref) return visit(schemas[$ref.split('/').at(-1) ?? ''])
    return Object.entries(part).some(
      ([name, member]) =>
        (isCredential(name) && (member as { type?: unknown }).type === 'string') || visit(member),
    )
  }
  return visit(schema)
}

const isCredential = (name: string): boolean => /^(username|.*password|updb)$/i.test(name)
