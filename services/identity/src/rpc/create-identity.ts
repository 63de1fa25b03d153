import { type BaseRow, identity, type ValuesOf } from '@overlay/model'
import { checkWords, createdValues, type History, newId, type Viewer } from '@overlay/platform'
import type { EntityServiceService, Methods, Written } from '@overlay/rpc'
import { identityCreator } from '../store/create-identities.js'
import { type Asked, wishFor } from './enrollment-wish.js'
import { type Enrollments, granting } from './enrollments.js'
import { hostingOf } from './hosting.js'

type Create = Methods<EntityServiceService>['create']

/** An identity, and the enrollment that it asks for: refused together, or there together when the answer leaves. */
export function identityCreation(history: History, pki: Enrollments, services: Viewer): Create {
  const create = identityCreator(history)
  const granted = granting(history, pki)

  return async ({ json }, context): Promise<Written> => {
    const body = JSON.parse(Buffer.from(json).toString()) as Record<string, unknown>
    const { values, tags } = valuesOf(body)
    checkWords(identity, values, new Set(['roleAttributes']))
    const hosting = await hostingOf(services, body, context)
    const id = newId(identity.ids)
    const wish = wishFor(id, body.enrollment as Asked | null | undefined)
    // of nobody yet: nothing of an identity that is new can be outstanding
    if (wish) await pki.checkEnrollment({ ...wish, identityId: '' }, context)
    const position = await create({
      id,
      values: { ...values, ...hosting },
      tags,
      told: wish ? { enrollmentWanted: wish } : {},
      context,
    })
    return wish ? granted({ id, position }, wish, context) : { id, position }
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
