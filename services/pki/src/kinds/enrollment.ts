import {
  edgeRouter,
  enrollment,
  identity,
  type Reference,
  type RowOf,
  referenceTo,
  transitRouter,
} from '@overlay/model'
import {
  type Context,
  EnrollmentWish,
  Fault,
  type IdentityServiceService,
  invalid,
  type Methods,
  type Written,
} from '@overlay/rpc'
import { type ChangeLog, lockEntities, momentOf, writeChanges } from '@overlay/store/change-log'
import { createdFields, type Kind, kind, type Names } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import { type Objection, objectionTo } from '../domain/enrollment.js'
import type { EnrollmentIssuer } from '../keys/enrollment-issuer.js'
import { findCa } from '../store/cas.js'
import { recordEnded } from '../store/ended-enrollments.js'
import { insertEnrollments, type OwnerKind, type StoredEnrollment } from '../store/enrollments.js'

type Row = RowOf<typeof enrollment>

export interface EnrollmentKindDeps {
  readonly changeLog: ChangeLog
  readonly issuer: EnrollmentIssuer
  readonly names: Names
  readonly expectEnrollment: Methods<IdentityServiceService>['expectEnrollment']
  now(): Date
}

export const enrollments = (deps: EnrollmentKindDeps): Kind =>
  kind(
    enrollment,
    {
      async view(_, rows, { context }) {
        const [nameOf, signed] = await Promise.all([
          ownerNames(deps.names, rows, context),
          deps.issuer.signed(rows.map(storedRow)),
        ])
        return signed.map(({ token, method, jwt, caId, identityId, edgeRouterId, transitRouterId }) => ({
          token,
          method,
          jwt,
          // wire: members that it does not have are left out
          ...(caId && { caId }),
          ...(identityId && { identityId, identity: reference('identities', identityId, nameOf) }),
          ...(edgeRouterId && { edgeRouterId, edgeRouter: reference('edge-routers', edgeRouterId, nameOf) }),
          ...(transitRouterId && {
            transitRouterId,
            transitRouter: reference('transit-routers', transitRouterId, nameOf),
          }),
        }))
      },

      deleting: (tx, { id }) => recordEnded(tx, id),
    },
    {
      operations: () => ({
        create: ({ json }, context) =>
          create(deps, JSON.parse(Buffer.from(json).toString()) as CreateBody, context),
      }),
    },
  )

/** The definition has the methods of creates, and times of any kind. */
const storedRow = (row: Row) => row as StoredEnrollment

const owners = { identities: identity, 'edge-routers': edgeRouter, 'transit-routers': transitRouter }

type NameOf = (kind: OwnerKind, id: string) => string | undefined

async function ownerNames(names: Names, rows: readonly Row[], context: Context): Promise<NameOf> {
  const namesOf = (kind: OwnerKind, member: 'identityId' | 'edgeRouterId' | 'transitRouterId') =>
    names(kind, [...new Set(rows.flatMap((row) => row[member] ?? []))], context)
  const [identities, edgeRouters, transitRouters] = await Promise.all([
    namesOf('identities', 'identityId'),
    namesOf('edge-routers', 'edgeRouterId'),
    namesOf('transit-routers', 'transitRouterId'),
  ])
  const byKind = { identities, 'edge-routers': edgeRouters, 'transit-routers': transitRouters }
  return (kind, id) => byKind[kind].get(id)
}

const reference = (kind: OwnerKind, id: string, nameOf: NameOf): Reference =>
  referenceTo(owners[kind], id, nameOf(kind, id))

interface CreateBody {
  readonly [member: string]: unknown
  readonly method: string
  readonly identityId: string
  readonly expiresAt: string
  readonly caId?: string | null
  readonly username?: string | null
}

/** Gives an identity another way to enroll. */
async function create(
  { changeLog, issuer, names, expectEnrollment, now }: EnrollmentKindDeps,
  body: CreateBody,
  context: Context,
): Promise<Written> {
  const { method, identityId, expiresAt, caId, username } = body
  const { db } = changeLog
  const moment = await momentOf(db)
  const identities = await names('identities', [identityId], context)
  if (!identities.has(identityId)) throw unknownIdentity(identityId)
  const wish = EnrollmentWish.fromPartial({
    method,
    identityId,
    caId: caId ?? '',
    username: username ?? '',
    expiresAtMs: timeOf(expiresAt),
  })
  const objection = await findObjection(db, wish, now())
  if (objection)
    throw objection.field === 'username' && wish.username
      ? invalidMember(objection)
      : invalidReference(objection)
  const issued = issuer.issue(wish)
  await expectEnrollment({ enrollmentId: issued.id, identityId }, context)
  const owner = new Map([['identities', new Set([identityId])]])
  const position = await writeChanges(changeLog, context, async (tx) => {
    const deleted = await lockEntities(tx, owner, moment)
    if (deleted.size > 0) throw unknownIdentity(identityId)
    const changes = await insertEnrollments(tx, [{ ...createdFields(enrollment, body), ...issued }])
    if (changes.length === 0) throw enrollmentExists(method)
    return changes
  })
  return { id: issued.id, position }
}

export async function findObjection(db: Db, wish: EnrollmentWish, now: Date): Promise<Objection | undefined> {
  const caExists = wish.caId !== '' && (await findCa(db, wish.caId)) !== undefined
  return objectionTo(wish, now, caExists)
}

function timeOf(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw invalid('expiresAt', 'expiresAt must be a date and time', text)
  return Math.max(time, 1) // 0 means: as configured
}

export const enrollmentExists = (method: string): Fault =>
  new Fault('ENROLLMENT_EXISTS', {
    field: 'method',
    reason: 'an enrollment of this method is outstanding already',
    value: method,
  })

export const invalidMember = ({ field, reason, value }: Objection): Fault => invalid(field, reason, value)

const unknownIdentity = (value: string): Fault =>
  invalidReference({ field: 'identityId', reason: 'identity not found', value })

/** wire: one text, not a field error. */
const invalidReference = ({ field, reason, value }: { readonly [K in keyof Objection]: string }): Fault =>
  new Fault('REFERENCED_ENTITY_NOT_FOUND', `the value '${value}' for '${field}' is invalid: ${reason}`)
