import { type ChangeLog, lockEntities, type Moment, momentOf } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Context, type EnrollmentWish, Fault, invalid, notFound, type Written } from '@overlay/rpc'
import { noWish, type Objection, objectionTo } from '../domain/enrollment.js'
import type { Grants } from '../keys/enrollment-issuer.js'
import { findCa } from '../store/cas.js'
import { insertEnrollments, isOutstanding, renewEnrollment } from '../store/enrollments.js'

export interface Creating {
  readonly changeLog: ChangeLog
  readonly grants: Grants
  readonly names: Names
  readonly now: () => Date
}

interface Body {
  readonly method: string
  readonly identityId: string
  readonly expiresAt: string
  readonly caId?: string | null
  readonly username?: string | null
}

/** An admin gives an identity another way in. */
export async function createForIdentity(creating: Creating, body: Body, context: Context): Promise<Written> {
  const { method, identityId } = body
  const moment = await momentOf(creating.changeLog.db)
  const known = await creating.names('identities', [identityId], context)
  if (!known.has(identityId)) throw unknownIdentity(identityId)
  const wish = {
    ...noWish,
    method,
    identityId,
    caId: body.caId ?? '',
    username: body.username ?? '',
    expiresAtMs: timeOf(body.expiresAt),
  }
  const objection = await objectionNow(creating, wish)
  if (objection)
    throw objection.field === 'username' && wish.username ? refused(objection) : notReferable(objection)
  return store(creating, wish, moment, context)
}

/** Refuses what could not be granted later. */
export async function check(creating: Creating, wish: EnrollmentWish): Promise<void> {
  const objection = await objectionNow(creating, wish)
  if (objection?.field === 'caId') throw new Fault('NOT_FOUND', objection)
  if (objection) throw refused(objection)
  if (wish.identityId && (await isOutstanding(creating.changeLog.db, wish.identityId, wish.method)))
    throw exists(wish.method)
}

async function objectionNow(
  { changeLog, now }: Creating,
  wish: EnrollmentWish,
): Promise<Objection | undefined> {
  const isCaKnown = wish.caId !== '' && (await findCa(changeLog.db, wish.caId)) !== undefined
  return objectionTo(wish, now(), isCaKnown)
}

/** differs: another token, as the documents say; the one before is void. */
export async function refresh(
  { changeLog, grants, now }: Creating,
  id: string,
  expiresAtMs: number,
  context: Context,
): Promise<Written> {
  if (expiresAtMs <= now().getTime())
    throw invalid('expiresAt', 'expiresAt must be in the future', new Date(expiresAtMs))
  const { position } = await changeLog.write(context, async (tx) => {
    const changes = await renewEnrollment(tx, id, (known) => {
      // differs: not a crash
      if (!known.identityId) throw invalid('id', 'a router is enrolled anew instead', id)
      return grants.remade(known, new Date(expiresAtMs))
    })
    if (changes.length === 0) throw notFound('enrollment', id)
    return { result: id, changes }
  })
  return { id, position }
}

async function store(
  { changeLog, grants }: Creating,
  wish: EnrollmentWish,
  moment: Moment,
  context: Context,
): Promise<Written> {
  const made = await grants.made(wish)
  const owner = new Map([['identities', new Set([wish.identityId])]])
  const { position } = await changeLog.write(context, async (tx) => {
    const deleted = await lockEntities(tx, owner, moment)
    if (deleted.size > 0) throw unknownIdentity(wish.identityId)
    const changes = await insertEnrollments(tx, [made])
    if (changes.length === 0) throw exists(wish.method)
    return { result: made.id, changes }
  })
  return { id: made.id, position }
}

function timeOf(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time)) throw invalid('expiresAt', 'expiresAt must be a date and time', text)
  return Math.max(time, 1) // 0 would mean: as configured
}

const exists = (method: string): Fault =>
  new Fault('ENROLLMENT_EXISTS', {
    field: 'method',
    reason: 'an enrollment of this method is outstanding already',
    value: method,
  })

const unknownIdentity = (value: string): Fault =>
  notReferable({ field: 'identityId', reason: 'identity not found', value })

const refused = ({ field, reason, value }: Objection): Fault => invalid(field, reason, value)

/** wire: one text, not a field error. */
const notReferable = ({ field, reason, value }: { readonly [K in keyof Objection]: string }): Fault =>
  new Fault('REFERENCED_ENTITY_NOT_FOUND', `the value '${value}' for '${field}' is invalid: ${reason}`)
