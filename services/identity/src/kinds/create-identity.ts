import { type BaseRow, identity, service, type ValuesOf } from '@overlay/model'
import { type ChangeLog, lockEntities, momentOf } from '@overlay/platform/change-log'
import { checkWords, createdValues, type Names, newId } from '@overlay/platform/kind-store'
import type { Context, EntityServiceService, Methods, Written } from '@overlay/rpc'
import { type Asked, wishFor } from '../credentials/enrollment-wish.js'
import { type Enrollments, granting } from '../credentials/enrollments.js'
import { type Hold, identityCreator } from '../store/identity-inserts.js'
import { hostingOf, refuseUnknown, servicesIn } from './hosting.js'

type Create = Methods<EntityServiceService>['create']

/** An identity, and the enrollment that it asks for: refused together, or there together when the answer leaves. */
export function identityCreation(changeLog: ChangeLog, pki: Enrollments, names: Names): Create {
  const create = identityCreator(changeLog)
  const granted = granting(changeLog, pki)

  return async ({ json }, context): Promise<Written> => {
    const body = JSON.parse(Buffer.from(json).toString()) as Record<string, unknown>
    const { values, tags } = valuesOf(body)
    checkWords(identity, values, new Set(['roleAttributes']))
    const hosting = hostingOf(body)
    const hold = await holderOf(servicesIn(hosting), context)
    const id = newId(identity.ids)
    const wish = wishFor(id, body.enrollment as Asked | null | undefined)
    // of nobody yet: nothing of an identity that is new can be outstanding
    if (wish) await pki.checkEnrollment({ ...wish, identityId: '' }, context)
    const payload = wish ? { enrollmentWanted: wish } : {}
    const position = await create({ id, values: { ...values, ...hosting }, tags, payload, context }, hold)
    return wish ? granted({ id, position }, wish, context) : { id, position }
  }

  /** Looks the services up. Returns what holds them in the transaction; undefined: there are none. */
  async function holderOf(services: readonly string[], context: Context): Promise<Hold | undefined> {
    if (services.length === 0) return undefined
    const moment = await momentOf(changeLog.db)
    const found = await names(service.kind, services, context)
    refuseUnknown(services, (id) => found.has(id))
    return async (tx) => {
      const deleted = await lockEntities(tx, new Map([[service.kind, new Set(services)]]), moment)
      refuseUnknown(services, (id) => !deleted.get(service.kind)?.has(id))
    }
  }
}

function valuesOf(body: Record<string, unknown>): {
  values: ValuesOf<typeof identity>
  tags: BaseRow['tags']
} {
  const { values, tags } = createdValues(identity, body)
  const given = values as ValuesOf<typeof identity>
  return {
    values: {
      ...given,
      type: 'Default', // wire: whatever is sent; only routers make identities of another type
      externalId: given.externalId || null,
      authPolicyId: given.authPolicyId || 'default',
    },
    tags,
  }
}
