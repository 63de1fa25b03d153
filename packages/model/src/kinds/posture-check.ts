import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { flag, integer, listOf, named, object, oneOf, orNull, type Schema, text } from '../kernel/schema.js'
import type { Field } from '../kernel/types.js'
import { variantsOf } from '../kernel/variants.js'

const osTypes = ['Windows', 'WindowsServer', 'Android', 'iOS', 'Linux', 'macOS'] as const

const word = { type: 'string', maxLength: 4096 }
const words = { type: 'array', items: word }
const path = { ...word, minLength: 1 }
const osType = { type: 'string', enum: osTypes }
const record = (properties: object, required: readonly string[]) => ({ type: 'object', properties, required })

/** A member of some types only: null in rows of other types, shown by the view. */
const own = <T>(one: Field<T>): Field<T | null> =>
  ({ ...one, fallback: null, hidden: true }) as Field<T | null>

/** A list in a JSON column, in the order of the request. */
const list = <T>(items: object, minItems = 0): Field<readonly T[] | null> => ({
  ...(field.object({ hidden: true, schema: { type: 'array', minItems, items } }) as unknown as Field<
    readonly T[] | null
  >),
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

const shownOsType: Schema<string> = oneOf(...osTypes)

export const operatingSystemSchema = named(
  'operatingSystem',
  object({ type: shownOsType, versions: orNull(listOf(text)) }),
)
const process = { hashes: orNull(listOf(text)), osType: shownOsType, path: text }

/** A condition that an endpoint must meet to use services of a policy. Its members depend on its type. */
export const postureCheck = defineEntity({
  kind: 'posture-checks',
  singular: 'postureCheck',
  owner: 'policy',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    typeId: field.string({ write: 'RRR', filter: false }),
    // wire: words with '#' in front are accepted here, unlike in other kinds
    roleAttributes: field.strings({ filter: false }),
    operatingSystems: list<OperatingSystem>(
      record({ type: osType, versions: { ...words, type: ['array', 'null'] } }, ['type', 'versions']),
      1,
    ),
    domains: list<string>(word, 1),
    macAddresses: list<string>(word, 1),
    'process.osType': own(field.oneOf(osTypes, { filter: false })),
    'process.path': own(field.string({ min: 1, filter: false })),
    'process.hashes': list<string>(word),
    'process.signerFingerprint': own(field.string({ filter: false })),
    semantic: own(field.oneOf(['AllOf', 'AnyOf'], { filter: false })),
    processes: list<Process>(
      record({ osType, path, hashes: words, signerFingerprints: words }, ['osType', 'path']),
      1,
    ),
    timeoutSeconds: own(field.integer({ filter: false })),
    promptOnWake: own(field.bool()),
    promptOnUnlock: own(field.bool()),
    ignoreLegacyEndpoints: own(field.bool({ filter: false })),
  },
  shows: { always: { roleAttributes: listOf(text), version: integer } },
  variants: {
    by: 'typeId',
    of: {
      OS: {
        title: 'OperatingSystem',
        fields: { operatingSystems: 'RRO' },
        shows: { always: { operatingSystems: listOf(operatingSystemSchema) } },
      },
      DOMAIN: {
        title: 'Domain',
        fields: { domains: 'RRO' },
        shows: { always: { domains: listOf(text) } },
      },
      MAC: {
        title: 'MacAddress',
        fields: { macAddresses: 'RRO' },
        shows: { always: { macAddresses: listOf(text) } },
      },
      PROCESS: {
        title: 'Process',
        fields: {
          'process.osType': 'RRO', // differs: a patch may have one without the other
          'process.path': 'RRO',
          'process.hashes': 'OOO',
          'process.signerFingerprint': 'OOO',
        },
        shows: { always: { process: named('process', object(process, { signerFingerprint: text })) } },
      },
      PROCESS_MULTI: {
        title: 'ProcessMulti',
        fields: { semantic: 'RRO', processes: 'RRO' },
        shows: {
          always: {
            processes: listOf(
              named('processMulti', object({ ...process, signerFingerprints: listOf(text) })),
            ),
            semantic: oneOf('AllOf', 'AnyOf'),
          },
        },
      },
      MFA: {
        title: 'Mfa',
        fields: {
          timeoutSeconds: 'OOO',
          promptOnWake: 'OOO',
          promptOnUnlock: 'OOO',
          ignoreLegacyEndpoints: 'OOO',
        },
        shows: {
          always: { timeoutSeconds: integer },
          sometimes: { ignoreLegacyEndpoints: flag, promptOnUnlock: flag, promptOnWake: flag },
        },
      },
    },
  },
  listType: 'application/json; charset=utf-8',
})

/** One definition for each type. */
export const postureCheckVariants = variantsOf(postureCheck)
