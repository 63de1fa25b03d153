import { type Check, type CheckDeps, copies } from '@overlay/maintenance'
import { edgeRouter, transitRouter } from '@overlay/model'
import { pushAll } from '@overlay/process/async'
import { type Change, EnrollmentWish } from '@overlay/rpc'
import type { ConsumerDefinition, RowChange } from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import { endEnrollmentsOfOwners, endRouterEnrollments } from '../store/ended-enrollments.js'
import { insertEnrollments } from '../store/enrollments.js'
import { type ConsumerDeps, endEnrollmentsOfDeleted, ownerChecks } from './owners.js'

const routerKinds = ['edge-routers', 'transit-routers'] as const

const decodeEdgeRouter = payloadDecoder(edgeRouter)
const decodeTransitRouter = payloadDecoder(transitRouter)
const decode = (change: Change) =>
  change.kind === transitRouter.kind ? decodeTransitRouter(change) : decodeEdgeRouter(change)

type Router = NonNullable<ReturnType<typeof decode>>

/** The enrollment by which the router may enroll: none once it has. */
const enrollmentIdOf = ({ isVerified, enrollmentId }: Router): string | null =>
  (!isVerified && enrollmentId) || null

const wishOf = (routerId: string, id: string, isEdge: boolean): EnrollmentWish =>
  EnrollmentWish.fromPartial(
    isEdge
      ? { id, method: 'erott', edgeRouterId: routerId }
      : { id, method: 'trott', transitRouterId: routerId },
  )

/** A router that has not enrolled has the one enrollment that it names. All others have none. */
export function sessionsConsumer({ source, issuer, names }: ConsumerDeps): ConsumerDefinition {
  const applyOne = async (tx: Tx, change: Change): Promise<readonly RowChange[]> => {
    const { id, kind } = change
    const router = decode(change)
    if (!router) return endEnrollmentsOfOwners(tx, kind === 'transit-routers' ? kind : 'edge-routers', [id])
    const enrollmentId = enrollmentIdOf(router)
    if (!enrollmentId) return endRouterEnrollments(tx, id)
    const enrollment = issuer.issue(wishOf(id, enrollmentId, router.isEdge !== false))
    return [
      ...(await endRouterEnrollments(tx, id, enrollment.id)),
      ...(await insertEnrollments(tx, [enrollment])),
    ]
  }
  const apply = async (tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> => {
    const own: RowChange[] = []
    for (const change of changes) pushAll(own, await applyOne(tx, change))
    return own
  }
  return {
    source,
    effects: {
      kinds: routerKinds,
      apply,
      async reload(tx, rows) {
        const own: RowChange[] = []
        for (const kind of routerKinds) {
          for await (const page of rows.pages(kind)) pushAll(own, await apply(tx, page))
          pushAll(own, await endEnrollmentsOfDeleted(tx, names, kind, rows))
        }
        return own
      },
    },
  }
}

export const sessionsChecks = (
  { source, effects }: ConsumerDefinition,
  deps: CheckDeps,
): readonly Check[] => [
  copies(deps, { source, ...effects }),
  ...routerKinds.flatMap((kind) => ownerChecks(deps, kind)),
]
