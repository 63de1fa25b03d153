import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import type { Entity, Field, Write } from '../kernel/types.js'

const text = { type: 'string', maxLength: 4096 }
const texts = { type: 'array', items: text }
const osTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const
const osType = { type: 'string', enum: osTypes }
const path = { ...text, minLength: 1 }

const object = (properties: object, required: readonly string[]) => ({ type: 'object', properties, required })

/** A member of some types only: null in the rows of others, and shown as its type wants it. */
const own = <T>(made: Field<T>): Field<T | null> =>
  ({ ...made, fallback: null, hidden: true }) as Field<T | null>

/** Kept in the order in which it was sent, in a JSON column; the driver would take it for an array of its own. */
const list = <T>(items: object, minItems = 0): Field<readonly T[] | null> => ({
  ...(field.object({ hidden: true, schema: { type: 'array', minItems, items } }) as unknown as Field<
    readonly T[] | null
  >),
  store: (values) => values && JSON.stringify(values),
  load: (stored) => (typeof stored === 'string' ? JSON.parse(stored) : stored) as readonly T[] | null,
})

export interface OperatingSystem {
  readonly type: string
  readonly versions: readonly string[] | null
}

export interface Process {
  readonly osType: string
  readonly path: string
  readonly hashes?: readonly string[]
  readonly signerFingerprints?: readonly string[]
}

/** What an endpoint must be like before a service policy lets it through. What it asks for follows its type. */
export const postureCheck = defineEntity({
  kind: 'posture-checks',
  singular: 'postureCheck',
  owner: 'policy',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    typeId: field.string({ write: 'RRR', filter: false }),
    roleAttributes: field.strings({ filter: false }), // wire: any words, also with '#' in front
    operatingSystems: list<OperatingSystem>(
      object({ type: osType, versions: texts }, ['type', 'versions']),
      1,
    ),
    domains: list<string>(text, 1),
    macAddresses: list<string>(text, 1),
    'process.osType': own(field.oneOf(osTypes, { filter: false })),
    'process.path': own(field.string({ min: 1, filter: false })),
    'process.hashes': list<string>(text),
    'process.signerFingerprint': own(field.string({ filter: false })),
    semantic: own(field.oneOf(['AllOf', 'AnyOf'], { filter: false })),
    processes: list<Process>(
      object({ osType, path, hashes: texts, signerFingerprints: texts }, ['osType', 'path']),
      1,
    ),
    timeoutSeconds: own(field.integer({ filter: false })),
    promptOnWake: own(field.bool()),
    promptOnUnlock: own(field.bool()),
    ignoreLegacyEndpoints: own(field.bool({ filter: false })),
  },
  links: {},
})

type Common = 'name' | 'typeId' | 'roleAttributes'
type Members = { readonly [M in Exclude<keyof typeof postureCheck.fields, Common>]?: Write }

/** Each type, what the documents call it, and the members that it has. */
const types: Readonly<Record<string, { readonly title: string; readonly members: Members }>> = {
  OS: { title: 'OperatingSystem', members: { operatingSystems: 'RRO' } },
  DOMAIN: { title: 'Domain', members: { domains: 'RRO' } },
  MAC: { title: 'MacAddress', members: { macAddresses: 'RRO' } },
  PROCESS: {
    title: 'Process',
    members: {
      'process.osType': 'RRO', // differs: a patch may have one without the other
      'process.path': 'RRO',
      'process.hashes': 'OOO',
      'process.signerFingerprint': 'OOO',
    },
  },
  PROCESS_MULTI: { title: 'ProcessMulti', members: { semantic: 'RRO', processes: 'RRO' } },
  MFA: {
    title: 'Mfa',
    members: {
      timeoutSeconds: 'OOO',
      promptOnWake: 'OOO',
      promptOnUnlock: 'OOO',
      ignoreLegacyEndpoints: 'OOO',
    },
  },
}

function variant(typeId: string, title: string, members: Members): Entity {
  const { name, typeId: tag, roleAttributes } = postureCheck.fields
  const fields: Readonly<Record<string, Field>> = postureCheck.fields
  const ownFields = Object.entries(members).map(([member, write]) => [
    member,
    { ...fields[member], write, hidden: false },
  ])
  return {
    ...postureCheck,
    singular: `postureCheck${title}`,
    fields: {
      name,
      typeId: { ...tag, schema: { type: 'string', enum: [typeId] } },
      roleAttributes,
      ...Object.fromEntries(ownFields),
    },
  } as Entity
}

/** One definition for each type, with its own members and no others: for bodies, and for what reads show. */
export const postureCheckVariants: ReadonlyMap<string, Entity> = new Map(
  Object.entries(types).map(([typeId, { title, members }]) => [typeId, variant(typeId, title, members)]),
)
