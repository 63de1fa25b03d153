import { identity, type RowOf, service, type ValuesOf, type ViewOf } from '@overlay/model'
import { type Context, Fault, invalid, notFound } from '@overlay/rpc'
import { type ChangeLog, lockEntities, momentOf, type WaitForFollowers } from '@overlay/store/change-log'
import {
  bodyIn,
  checkWords,
  createdValues,
  decodeView,
  type ForeignView,
  type Kind,
  type KindOperations,
  kind,
  type Names,
  newId,
  type Seams,
  type Viewer,
} from '@overlay/store/kind-store'
import sql from 'sql-template-tag'
import { type Enrollments, enrollmentIn, enrollmentPayload } from '../credentials/enrollments.js'
import { hostingMembers, hostingOf, servicesIn } from '../domain/hosting.js'
import { refuseLockoutByPolicy } from '../store/admins.js'
import { shareAuthPolicy } from '../store/auth-policies.js'
import { removeAuthenticatorsOf } from '../store/authenticators.js'
import { identityInserter, identityMembers, type LockReferences } from '../store/identity-rows.js'
import { mayHaveEnrollment } from '../store/outstanding-enrollments.js'
import { endSessionsOfIdentities, endSessionsOutside } from '../store/session-ends.js'
import { personOf, unbindExternalId } from '../store/subjects.js'

export interface IdentityDeps {
  readonly changeLog: ChangeLog
  readonly names: Names
  /** Answers the members of outstanding enrollments, too. */
  readonly pki: Enrollments & Viewer
  readonly waitForFollowers: WaitForFollowers
}

export const identities = (deps: IdentityDeps): Kind =>
  kind<typeof identity, Joined, View, Members>(identity, seams(deps), {
    operations: (uniform) => ({
      create: create(deps),
      update: update(deps, uniform),
      // when the answer leaves, its enrollments, roles and sessions are deleted, too
      delete: async (request, context) =>
        deps.waitForFollowers(await uniform.delete(request, context), context),
    }),
  })

/** wire: the type of the identity of a tunneling router, which is created and deleted with the router. */
const ROUTER = 'Router'

/** What decides whether pki is asked. */
interface Joined {
  readonly mayHaveEnrollment: boolean
}

type Row = RowOf<typeof identity> & Joined

type View = ViewOf<typeof identity>
type Members = keyof typeof identityMembers

const seams = ({ pki }: IdentityDeps): Seams<typeof identity, Joined, View, Members> => ({
  // an admin sees all identities, others only their own
  scope: ({ isAdmin, identityId }) => (isAdmin ? sql`true` : sql`id = ${identityId}`),

  members: identityMembers,
  joined: { mayHaveEnrollment },
  viewed: ['id', 'mayHaveEnrollment'],

  // fails when pki does not answer, if one of the rows may have an enrollment
  async view(_, rows, { context }) {
    const enrollments = await enrollmentsOf(pki, rows, context)
    return rows.map(({ id }) => ({ enrollment: enrollments.get(id)?.enrollment ?? {} }))
  },

  // updates only: creates are gathered
  async writing(tx, next, before, { also, exists, isWritten }) {
    if (!before) throw new Error('identities are not created one by one')
    const hosting = hostingMembers.filter(isWritten).map((member) => [member, next[member]])
    refuseUnknown(servicesIn(Object.fromEntries(hosting)), (id) => exists(service.kind, id))
    if (before.type === ROUTER && next.name !== before.name)
      throw invalid('name', 'the name of a router identity follows its router', next.name)
    const { authPolicyId, externalId } = derivedValues(next)
    if (authPolicyId !== before.authPolicyId) {
      if (!(await shareAuthPolicy(tx, authPolicyId))) throw notFound('authPolicy', authPolicyId)
      await refuseLockoutByPolicy(tx, next.id, authPolicyId)
      for (const change of await endSessionsOutside(tx, next.id, authPolicyId)) also(change)
    }
    if (externalId !== before.externalId) await unbindExternalId(tx, next.id)
    return { type: before.type, authPolicyId, externalId, enrollment: before.enrollment }
  },

  async deleting(tx, { id, type, isDefaultAdmin }, { also }) {
    if (isDefaultAdmin) throw new Fault('ENTITY_CAN_NOT_BE_DELETED')
    if (type === ROUTER)
      throw new Fault('ENTITY_CAN_NOT_BE_DELETED', 'the identity of a router is deleted with the router')
    for (const change of await endSessionsOfIdentities(tx, [id])) also(change)
    for (const change of await removeAuthenticatorsOf(tx, [id])) also(change)
  },
})

async function enrollmentsOf(
  pki: Viewer,
  rows: readonly Row[],
  context: Context,
): Promise<ReadonlyMap<string, ForeignView<typeof identity>>> {
  const ids = rows.filter(({ mayHaveEnrollment }) => mayHaveEnrollment).map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const { json } = await pki.view({ kind: identity.kind, ids }, context)
  return new Map(ids.map((id, i) => [id, decodeView<ForeignView<typeof identity>>(json[i]) ?? {}]))
}

type Values = ValuesOf<typeof identity>

const derivedValues = ({ authPolicyId, externalId }: Pick<Values, 'authPolicyId' | 'externalId'>) => ({
  authPolicyId: authPolicyId || 'default',
  externalId: externalId || null,
})

/** Creates an identity with the enrollment that the body requests. Both exist when the answer leaves, or neither. */
function create({ changeLog, names, pki, waitForFollowers }: IdentityDeps): KindOperations['create'] {
  const insert = identityInserter(changeLog)
  return async ({ json }, context) => {
    const body = bodyIn(json)
    const { values, tags } = valuesIn(body)
    checkWords(identity, values, new Set(['roleAttributes']))
    const lock = await lockOfServices(changeLog, names, servicesIn(values), context)
    const id = newId(identity.ids)
    const request = enrollmentIn(body, id)
    const enrollment = request ? { ...values.enrollment, id: request.id } : null
    // without the identity: a new one cannot have an outstanding enrollment
    if (request) await pki.checkEnrollment({ ...request, identityId: '' }, context)
    const payload = request ? enrollmentPayload(request) : {}
    const position = await insert({ id, values: { ...values, enrollment }, tags, payload, context }, lock)
    const written = { id, position }
    return request ? waitForFollowers(written, context, ['pki']) : written // for the enrollment
  }
}

function valuesIn(body: Readonly<Record<string, unknown>>) {
  const { values, tags } = createdValues(identity, body)
  const members = values as Values
  return {
    values: {
      ...members,
      ...derivedValues(members),
      ...hostingOf(body),
      type: 'Default' as const, // wire: the type in the body is ignored; only identities of routers have another one
    },
    tags,
  }
}

/** Looks services up. Returns what locks them in the transaction; undefined: there are none. */
async function lockOfServices(
  changeLog: ChangeLog,
  names: Names,
  ids: readonly string[],
  context: Context,
): Promise<LockReferences | undefined> {
  if (ids.length === 0) return undefined
  const moment = await momentOf(changeLog.db)
  const existing = await names(service.kind, ids, context)
  refuseUnknown(ids, (id) => existing.has(id))
  return async (tx) => {
    const deleted = await lockEntities(tx, new Map([[service.kind, new Set(ids)]]), moment)
    refuseUnknown(ids, (id) => !deleted.get(service.kind)?.has(id))
  }
}

function refuseUnknown(services: readonly string[], exists: (id: string) => boolean): void {
  const unknown = services.find((id) => !exists(id))
  if (unknown !== undefined) throw notFound(service.called, unknown)
}

const update =
  ({ changeLog }: IdentityDeps, uniform: KindOperations): KindOperations['update'] =>
  async (request, context) => {
    const body = bodyIn(request.json)
    // wire: a PUT with the type Router is a field error `typeId`; a PATCH ignores the type
    if (body.type === ROUTER && isReplace(request.mask)) {
      const person = await personOf(changeLog.db, request.ref?.id ?? '')
      if (person && person.identityType !== ROUTER)
        throw invalid('typeId', 'an identity can not become that of a router', ROUTER)
    }
    const json = Buffer.from(JSON.stringify({ ...body, ...hostingOf(body) }))
    return uniform.update({ ...request, json }, context)
  }

const replaceable = Object.entries(identity.fields).flatMap(([name, { write }]) =>
  write[1] === '-' ? [] : [name],
)
const isReplace = (mask: readonly string[]): boolean => replaceable.every((name) => mask.includes(name))
