import {
  authPolicy,
  bodySchemaOf,
  config,
  configType,
  type Entity,
  identity,
  service,
  servicePolicy,
} from '@overlay/model'
import { Fault } from '@overlay/rpc'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { entityBody } from '../api/entity-body.js'
import { check as checkBody } from './validate.js'

const check = (schema: object, sent: unknown, bytes = 100): unknown => {
  const { value, refusal } = checkBody(schema as never, sent, bytes)
  if (refusal) throw refusal
  return value
}

const thrown = (work: () => unknown): unknown => {
  try {
    return work()
  } catch (err) {
    if (!(err instanceof Fault)) throw err
    return [err.code, err.detail]
  }
}
const bodies = new Map(
  [service, identity, authPolicy].map((entity) => [entity.kind, bodySchemaOf(entity, 'create')]),
)
const create = (value: unknown, { kind }: Entity = service) =>
  thrown(() => check(bodies.get(kind) ?? {}, value))
const refused = (field: string, reason: string, value?: unknown) => [
  'COULD_NOT_VALIDATE',
  { field, reason: `${field} in body ${reason}`, value },
]

test('a missing required member is reported without a value', () => {
  expect(create({ encryptionRequired: true })).toEqual(refused('name', 'is required'))
})
test('null counts as missing', () => {
  expect(create({ name: null, encryptionRequired: true })).toEqual(refused('name', 'is required'))
})
test('null is a value of a required member that may be null', () => {
  const list = { type: ['array', 'null'], items: { type: 'string' } }
  const schema = { type: 'object', properties: { required: list, other: list }, required: ['required'] }
  expect(check(schema, { required: null, other: null })).toEqual({ required: null })
  expect(thrown(() => check(schema, { other: [] }))).toEqual(refused('required', 'is required'))
})
test('a reference, as reads show it, stands for its id', () => {
  const type = { _links: {}, entity: 'identity-types', id: 'Default', name: 'Default' }
  expect(create({ name: 'a', isAdmin: false, type }, identity)).toMatchObject({ type: 'Default' })
  for (const other of [{ id: 'Default' }, { entity: 'x' }, { entity: 'x', id: 1 }])
    expect(create({ name: 'a', isAdmin: false, type: other }, identity)).toEqual([
      'COULD_NOT_PARSE_BODY',
      'type cannot be read as string',
    ])
})
test('of several errors the first by name is reported', () => {
  expect(create({ type: 'Nope' }, identity)).toEqual(refused('isAdmin', 'is required'))
})
test('a value outside an enumeration is reported with the allowed values', () => {
  expect(create({ name: 'a', isAdmin: false, type: 'Nope' }, identity)).toEqual(
    refused('type', 'should be one of [Default User Device Service Router]', 'Nope'),
  )
})
test('lengths and bounds are reported as by the original', () => {
  expect(create({ name: '', encryptionRequired: true })).toEqual(
    refused('name', 'should be at least 1 chars long', ''),
  )
  expect(create({ name: 'a', isAdmin: false, type: 'User', defaultHostingCost: 70000 }, identity)).toEqual(
    refused('defaultHostingCost', 'should be less than or equal to 65535', 70000),
  )
})
test('nested members are named with dots', () => {
  expect(create({ name: 'a', primary: { cert: {} }, secondary: {} }, authPolicy)).toEqual(
    refused('primary.cert.allowExpiredCerts', 'is required'),
  )
  expect(create({ name: 'a', secondary: { requireTotp: true } }, authPolicy)).toEqual(
    refused('primary', 'is required'),
  )
})
test('a wrong JSON type beats everything else', () => {
  expect(create({ name: 5 })).toEqual(['COULD_NOT_PARSE_BODY', 'name cannot be read as string'])
  expect(create({ name: 'a', encryptionRequired: 'yes' })).toEqual([
    'COULD_NOT_PARSE_BODY',
    'encryptionRequired cannot be read as boolean',
  ])
  expect(create({ name: 'a', encryptionRequired: true, roleAttributes: [1] })).toEqual([
    'COULD_NOT_PARSE_BODY',
    'roleAttributes.0 cannot be read as string',
  ])
})
test('limits come after the form', () => {
  const { refusal } = checkBody(bodies.get('services') as never, { name: '', encryptionRequired: true }, 100)
  expect(refusal?.detail).toMatchObject({ field: 'name' })
  expect(create({ name: '' })).toEqual(refused('encryptionRequired', 'is required'))
})
test.each([
  ['data', config, { name: 'a', configTypeId: 'host.v1' }],
  ['schema', configType, { name: 'a' }],
])('%s that is no object is refused by its name, in every operation', (field, entity, rest) => {
  for (const value of ['x', 5, 1.5, true, [], [{}]])
    for (const operation of ['create', 'replace', 'patch'] as const) {
      const { refusal } = checkBody(bodySchemaOf(entity, operation), { ...rest, [field]: value }, 100)
      expect([refusal?.code, refusal?.detail]).toEqual(refused(field, 'must be of type object', value))
    }
})
test.each(['x', 5, true, []])('a map of described values cannot be read from %j', (tags) => {
  expect(create({ name: 'a', encryptionRequired: true, tags })).toEqual([
    'COULD_NOT_PARSE_BODY',
    'tags cannot be read as object',
  ])
})
test('a whole number that no column can hold is not readable', () => {
  expect(create({ name: 'a', encryptionRequired: true, maxIdleTimeMillis: 1e300 })).toEqual([
    'COULD_NOT_PARSE_BODY',
    'a number is out of range',
  ])
})
test('unknown and read-only members are dropped', () => {
  const body = JSON.parse('{"id":"x","name":"a","encryptionRequired":true,"other":1,"__proto__":{"a":1}}')
  expect(create(body)).toEqual({ name: 'a', encryptionRequired: true })
})

test('names of members are taken in any case, and rather as they are written', () => {
  expect(create({ NAME: 'a', encryptionrequired: true })).toEqual({ name: 'a', encryptionRequired: true })
  expect(create({ Name: 'b', name: 'a', encryptionRequired: true })).toMatchObject({ name: 'a' })
  const systems = { type: 'array', items: { type: 'object', properties: { type: { type: 'string' } } } }
  expect(check(systems, [{ Type: 'Linux' }])).toEqual([{ type: 'Linux' }])
})

const read = (write: 'replace' | 'patch', sent: unknown, entity: Entity = service) => {
  const { schema, read } = entityBody(entity, write)
  return thrown(() => {
    const { json, mask } = read(check(schema, sent), sent)
    return [JSON.parse(json.toString()), [...mask].sort()]
  })
}

test('a replace writes every member that may be replaced, sent or not', () => {
  expect(read('replace', { name: 'a', encryptionRequired: true })).toEqual([
    { name: 'a' },
    ['configs', 'maxIdleTimeMillis', 'name', 'roleAttributes', 'tags', 'terminatorStrategy'],
  ])
})
test('a patch writes what is sent and not null', () => {
  expect(read('patch', { name: 'a', roleAttributes: [], configs: null })).toEqual([
    { name: 'a', roleAttributes: [] },
    ['name', 'roleAttributes'],
  ])
})
test('a patch names nested members one by one', () => {
  const [, mask] = read('patch', { primary: { updb: { allowed: true } }, tags: { a: 1 } }, authPolicy) as [
    unknown,
    string[],
  ]
  expect(mask).toEqual(['primary.updb.allowed', 'tags'])
})
test('a patch in which nothing is set is refused', () => {
  for (const nothing of [{}, null, { name: null }])
    expect(read('patch', nothing)).toEqual(['COULD_NOT_VALIDATE', 'no fields to update'])
})
test('a patch of nothing but what stays as it was created is refused', () => {
  expect(read('patch', { encryptionRequired: false })).toEqual(['COULD_NOT_VALIDATE', 'no fields to update'])
})
test('a patch of unknown members is not', () => {
  expect(read('patch', { other: 1, encryptionRequired: false })).toEqual([{}, []])
})
test('a map may be emptied', () => {
  expect(read('patch', { tags: {} })).toEqual([{ tags: {} }, ['tags']])
})

test('any JSON is accepted or refused, and nothing else happens', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const entity of [service, identity, authPolicy]) expect(() => create(value, entity)).not.toThrow()
    }),
  )
})

describe('a discriminator', () => {
  const variant = (word: string, member: string) => ({
    type: 'object',
    properties: { type: { type: 'string', enum: [word] }, [member]: { type: 'string' } },
    required: ['type', member],
  })
  const schema = {
    type: 'object',
    discriminator: { propertyName: 'type' },
    oneOf: [variant('A', 'a'), variant('B', 'b')],
  }
  const read = (value: unknown) => thrown(() => check(schema, value))

  test('those of its word are asked for, and others are left out', () => {
    expect(read({ type: 'A', a: 'x', b: 'y', c: 'z' })).toEqual({ type: 'A', a: 'x' })
    expect(read({ type: 'B', a: 'x' })).toEqual(refused('b', 'is required'))
  })
  test('its own name is taken in any case', () => {
    expect(read({ Type: 'A', A: 'x' })).toEqual({ type: 'A', a: 'x' })
  })
  test('is required', () => {
    expect(read({ a: 'x' })).toEqual(refused('type', 'is required', ''))
    expect(read(null)).toEqual(refused('type', 'is required', ''))
  })
  test('a word that is none cannot be read', () => {
    expect(read({ type: 'C' })).toEqual(['COULD_NOT_PARSE_BODY', 'type is not known: "C"'])
    expect(read({ type: 5 })).toEqual(['COULD_NOT_PARSE_BODY', 'type is not known: 5'])
    expect(read([])).toEqual(['COULD_NOT_PARSE_BODY', 'the body cannot be read as object'])
  })
  test('in a list it is named with its place', () => {
    const list = { type: 'array', items: schema }
    expect(thrown(() => check(list, [{ type: 'A', a: 'x', b: null }]))).toEqual([{ type: 'A', a: 'x' }])
    expect(thrown(() => check(list, [{ type: 'A', a: 'x' }, {}]))).toEqual(
      refused('1.type', 'is required', ''),
    )
  })
})

describe('limits', () => {
  const list = { type: 'array', items: { type: 'integer', minimum: 1 } }
  const schema = { type: 'object', properties: { b: list, a: { type: 'integer', minimum: 1 } } }
  const large = 1 << 20

  test('of the errors in a large body the first found is reported', () => {
    const wrong = { a: 0, b: [0] }
    expect(thrown(() => check(schema, wrong))).toEqual(
      refused('a', 'should be greater than or equal to 1', 0),
    )
    expect(thrown(() => check(schema, wrong, large))).toEqual(
      refused('b.0', 'should be greater than or equal to 1', 0),
    )
  })

  test('a list without a limit of its own has a default limit, and longer lists are not checked further', () => {
    const tooLong = { b: Array(10_001).fill('x') }
    expect(thrown(() => check(schema, tooLong, large))).toEqual(
      refused('b', 'should have at most 10000 items'),
    )
    const own = { ...schema, properties: { b: { ...list, maxItems: 2 } } }
    expect(thrown(() => check(own, { b: [1, 2, 3] }))).toEqual(refused('b', 'should have at most 2 items'))
  })

  test('a text without a limit of its own has one', () => {
    const text = { type: 'object', properties: { a: { type: 'string' } } }
    expect(check(text, { a: 'x'.repeat(65_536) }, large)).toBeDefined()
    expect(thrown(() => check(text, { a: 'x'.repeat(65_537) }, large))).toMatchObject([
      'COULD_NOT_VALIDATE',
      { field: 'a', reason: 'a in body should be at most 65536 chars long' },
    ])
  })

  test.each([
    ['serviceRoles', { name: 'p', type: 'Dial', semantic: 'AnyOf', serviceRoles: Array(10_001).fill('#a') }],
    ['roleAttributes', { name: 'p', encryptionRequired: true, roleAttributes: Array(10_001).fill('a') }],
  ])('%s has a limit', (field, body) => {
    const kind = 'type' in body ? servicePolicy : service
    expect(thrown(() => check(bodySchemaOf(kind, 'create'), body, large))).toEqual(
      refused(field, 'should have at most 10000 items'),
    )
  })
})
