import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import {
  anyObject,
  flag,
  integer,
  listOf,
  named,
  object,
  oneOf,
  orNull,
  text,
  time,
} from '../kernel/schema.js'

const process = named('postureQueryProcess', object({}, { osType: text, path: text }))

const postureQuery = named(
  'postureQuery',
  object(
    { id: text, isPassing: flag, queryType: text, timeout: integer, timeoutRemaining: integer },
    {
      _links: anyObject,
      createdAt: time,
      process,
      processes: orNull(listOf(process)),
      tags: anyObject,
      updatedAt: time,
    },
  ),
)

const postureQueries = named(
  'postureQueries',
  object({
    policyId: text,
    policyType: oneOf('Dial', 'Bind', 'Invalid'),
    isPassing: flag,
    postureQueries: listOf(postureQuery),
  }),
)

/** How a service chooses among its terminators; sessions implements each. */
export const terminatorStrategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const
/** Of a service that names none. */
export const defaultTerminatorStrategy: TerminatorStrategy = 'smartrouting'
export type TerminatorStrategy = (typeof terminatorStrategies)[number]

export const isTerminatorStrategy = (name: string): name is TerminatorStrategy =>
  (terminatorStrategies as readonly string[]).includes(name)

/** An application that identities dial and bind. */
export const service = defineEntity({
  kind: 'services',
  singular: 'service',
  owner: 'policy',
  followed: true,
  counted: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    encryptionRequired: field.bool({ write: 'R--', filter: false }), // differs: read-only after create
    terminatorStrategy: field.string(),
    maxIdleTimeMillis: field.integer({ filter: false }),
    configs: field.strings({ refs: 'configs' }), // differs: duplicates count once
    roleAttributes: field.attributes(),
  },
  links: {
    configs: { to: 'configs', by: 'configs' },
    'edge-routers': { to: 'edge-routers', unlisted: true },
    identities: { to: 'identities', unlisted: true },
    'service-edge-router-policies': { to: 'service-edge-router-policies' },
    'service-policies': { to: 'service-policies' },
    terminators: { to: 'terminators', through: 'service' },
  },
  shows: {
    // wire: config and permissions are null in linked lists
    always: {
      config: orNull(anyObject),
      permissions: orNull(listOf(oneOf('Dial', 'Bind', 'Invalid'))),
      postureQueries: listOf(postureQueries),
    },
  },
  listParameters: [
    {
      name: 'configTypes',
      type: 'strings',
      description: 'Ids or names of the config types whose data is wanted.',
    },
  ],
  summaryNames: ['services', 'services.edge'],
})
