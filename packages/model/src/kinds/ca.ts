import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { integer, named, object, orNull, text, texts } from '../kernel/schema.js'
import type { ValuesOf } from '../kernel/types.js'

const flag = () => field.bool({ write: 'RRO' })
/** A claim has all of these members, or none. */
const ofClaim = { filter: false, fallback: null, hidden: true } as const

const externalIdClaim = named(
  'externalIdClaim',
  object({
    index: orNull(integer),
    location: orNull(text),
    matcher: orNull(text),
    matcherCriteria: orNull(text),
    parser: orNull(text),
    parserCriteria: orNull(text),
  }),
)

/** A certificate authority of a third party. Once it is verified, holders of its certificates may enroll and log in. */
export const ca = defineEntity({
  kind: 'cas',
  singular: 'ca',
  owner: 'pki',
  followed: true,
  fields: {
    name: field.string({ write: 'RRO', min: 1, unique: true }),
    certPem: field.string({ write: 'R--', max: 65536, filter: false }),
    fingerprint: field.string({ write: '---', unique: true }),
    isVerified: field.bool({ write: '---' }),
    verificationToken: field.string({ write: '---', secret: true }), // shown to admins only
    isAuthEnabled: flag(),
    isAutoCaEnrollmentEnabled: flag(),
    isOttCaEnrollmentEnabled: flag(),
    // attributes and names of identities that enroll with a certificate of the authority
    identityRoles: field.attributes({ write: 'RRO', filter: false }),
    identityNameFormat: field.string({ write: 'ORO', filter: false }),
    'externalIdClaim.location': field.oneOf(['COMMON_NAME', 'SAN_URI', 'SAN_EMAIL'], ofClaim),
    'externalIdClaim.matcher': field.oneOf(['ALL', 'PREFIX', 'SUFFIX', 'SCHEME'], ofClaim),
    'externalIdClaim.matcherCriteria': field.string({ ...ofClaim, nullable: true }),
    'externalIdClaim.parser': field.oneOf(['NONE', 'SPLIT'], ofClaim),
    'externalIdClaim.parserCriteria': field.string({ ...ofClaim, nullable: true }),
    'externalIdClaim.index': field.integer({ ...ofClaim, nullable: true, min: 0, max: 1000 }),
  },
  shows: { always: texts('verificationToken'), sometimes: { externalIdClaim } },
})

type Values = ValuesOf<typeof ca>

export const claimMembers = [
  'location',
  'matcher',
  'matcherCriteria',
  'parser',
  'parserCriteria',
  'index',
] as const

/** Where a certificate names its identity. */
export type Claim = {
  readonly [M in (typeof claimMembers)[number]]: NonNullable<Values[`externalIdClaim.${M}`]>
}

/** The claim of an authority, if it has one. */
export function claimOf(values: Values): Claim | undefined {
  const members = claimMembers.map((member) => [member, values[`externalIdClaim.${member}`]] as const)
  return members.every(([, value]) => value === null) ? undefined : (Object.fromEntries(members) as Claim)
}
