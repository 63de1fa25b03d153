import { identity, type RowOf, type ValuesOf } from '@overlay/model'
import { combine, type Db, type History, plainOf } from '@overlay/platform'
import { type Change, type Context, Fault, invalid, notFound, type Position } from '@overlay/rpc'
import sql from 'sql-template-tag'

type Values = ValuesOf<typeof identity>

export interface NewIdentity {
  readonly id: string
  readonly values: Values
  readonly tags: RowOf<typeof identity>['tags']
  /** What followers hear besides: an enrollment that is wanted, with its token, which the audit must not hold. */
  readonly told: object
  readonly context: Context
}

interface Made {
  readonly id: string
  readonly at: Date
  readonly number: number
  readonly timeline: string
  readonly toldAt: Date
}

/** Creates identities, those that wait together in one statement. The position when it is made, else a Fault. */
export function identityCreator(history: History): (one: NewIdentity) => Promise<Position> {
  const create = combine<NewIdentity, Made | undefined>(async (entries) => {
    const { rows } = await history.db.query<Made>(
      sql`
      select made_id as id, made_at as at, made_number::float8 as number, made_timeline as timeline,
             told_at as "toldAt"
        from create_identities(${JSON.stringify(entries.map(entryOf))}::jsonb)`,
      'create-identities',
    )
    const last = rows.at(-1)
    if (last) history.appended({ timeline: last.timeline, number: last.number }, changesOf(entries, rows))
    const made = new Map(rows.map((row) => [row.id, row]))
    return entries.map(({ id }) => made.get(id))
  })
  return async (one) => {
    const made = await create(one)
    if (made) return { timeline: made.timeline, number: made.number }
    const refusal = await reasonFor(history.db, one)
    if (refusal) throw refusal
    return history.head()
  }
}

/** One element of the function's argument, in the words of the table. */
function entryOf({ id, values, tags, told, context }: NewIdentity, ord: number): object {
  const { fields } = identity
  return {
    ord,
    id,
    name: values.name,
    type: values.type,
    is_admin: values.isAdmin,
    role_attributes: fields.roleAttributes.store(values.roleAttributes),
    external_id: values.externalId,
    auth_policy_id: values.authPolicyId,
    app_data: fields.appData.store(values.appData),
    default_hosting_cost: values.defaultHostingCost,
    default_hosting_precedence: values.defaultHostingPrecedence,
    service_hosting_costs: values.serviceHostingCosts,
    service_hosting_precedences: values.serviceHostingPrecedences,
    enrollment: values.enrollment,
    tags,
    plain: plainWithoutTimes(id, values, tags),
    told,
    request_id: context.requestId,
    caller: context.caller.identityId,
  }
}

/** As every other write of an identity tells it; the times are the database's. */
function plainWithoutTimes(id: string, values: Values, tags: NewIdentity['tags']): object {
  const stored = Object.entries(identity.fields).map(([name, field]) => {
    const value = (values as Record<string, unknown>)[name]
    return [name, (field.load as (v: unknown) => unknown)((field.store as (v: unknown) => unknown)(value))]
  })
  const {
    createdAt: _,
    updatedAt: __,
    ...plain
  } = plainOf(identity, {
    ...(Object.fromEntries(stored) as Values),
    id,
    tags,
    isSystem: false,
    createdAt: new Date(0),
    updatedAt: new Date(0),
  })
  return plain
}

function changesOf(entries: readonly NewIdentity[], made: readonly Made[]): Change[] {
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  return made.flatMap(({ id, at, number, toldAt }) => {
    const entry = byId.get(id)
    if (!entry) return []
    const plain = plainWithoutTimes(id, entry.values, entry.tags)
    const json = Buffer.from(JSON.stringify({ ...plain, ...entry.told, createdAt: at, updatedAt: at }))
    return [{ kind: identity.kind, id, json, atMs: toldAt.getTime(), number }]
  })
}

/** Why the statement left it out. Nothing: it is there, and only the answer of an earlier try was lost. */
async function reasonFor(db: Db, { id, values }: NewIdentity): Promise<Fault | undefined> {
  const { name, externalId, authPolicyId } = values
  const { rows } = await db.query<Record<'mine' | 'name' | 'externalId' | 'policy', boolean>>(sql`
    select exists (select from identity where id = ${id}) as mine,
           exists (select from identity where name = ${name}) as name,
           exists (select from identity where external_id = ${externalId}) as "externalId",
           exists (select from auth_policy where id = ${authPolicyId}) as policy`)
  const [found] = rows
  if (found?.mine) return undefined
  if (found && !found.policy) return notFound('authPolicy', authPolicyId)
  if (found?.name) return invalid('name', 'name must be unique', name)
  if (found?.externalId) return invalid('externalId', 'externalId must be unique', externalId)
  return new Fault('UNAVAILABLE') // whoever was in the way has gone meanwhile: to be asked for again
}
