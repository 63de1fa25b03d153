import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import {
  flag,
  integer,
  listOf,
  type NoMembers,
  named,
  object,
  orNull,
  type SchemaValue,
  type Shown,
  text,
  texts,
  time,
} from '../kernel/schema.js'

/** Members of a router that has not enrolled yet. */
export const routerEnrollmentMembers = {
  enrollmentCreatedAt: orNull(time),
  enrollmentExpiresAt: orNull(time),
  enrollmentJwt: orNull(text),
  enrollmentToken: orNull(text),
}

export type RouterEnrollment = Shown<NoMembers, typeof routerEnrollmentMembers>

export const versionInfo = named(
  'versionInfo',
  object(texts('arch', 'buildDate', 'os', 'revision', 'version')),
)

/** Where other routers reach a router. */
export const routerListener = named('routerListener', object(texts('address', 'protocol')))

/** A network interface of a router's host. wire: `addresses` is null if it has none. */
export const networkInterface = named(
  'interface',
  object({
    ...texts('name', 'hardwareAddress'),
    mtu: integer,
    index: integer,
    addresses: orNull(listOf(text)),
    isUp: flag,
    isBroadcast: flag,
    isLoopback: flag,
    isMulticast: flag,
    isRunning: flag,
  }),
)

export type NetworkInterface = SchemaValue<typeof networkInterface>

/** A router that carries traffic between others. wire: lists of transit routers contain edge routers, too. */
export const transitRouter = defineEntity({
  kind: 'transit-routers',
  singular: 'transitRouter',
  owner: 'sessions',
  called: 'router',
  table: 'router',
  ids: 'short',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    cost: field.integer({ min: 0, max: 65535 }),
    noTraversal: field.bool(),
    disabled: field.bool(),
    isEdge: field.bool({ write: '---', filter: false, hidden: true }),
    enrollmentId: field.string({ write: '---', nullable: true, filter: false, hidden: true }),
    isVerified: field.bool({ write: '---', filter: false }),
    fingerprint: field.string({ write: '---', fabricWrite: 'OOO', nullable: true }),
    formerFingerprints: field.strings({ write: '---', filter: false, hidden: true }),
    unverifiedFingerprint: field.string({ write: '---', nullable: true, filter: false }),
    unverifiedCertPem: field.string({ write: '---', nullable: true, filter: false }),
  },
  shows: {
    always: { isOnline: flag },
    sometimes: { ...routerEnrollmentMembers, interfaces: listOf(networkInterface) },
    fabric: { listenerAddresses: listOf(routerListener), versionInfo },
  },
  published: { title: 'router' },
})
