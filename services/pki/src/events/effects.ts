import type { Effects, RowChange, Tx } from '@overlay/platform'
import type { Change, EnrollmentWish } from '@overlay/rpc'
import { noWish } from '../domain/enrollment.js'
import {
  endEnrollment,
  endOfAllBut,
  endOfOwner,
  endOfRouterBut,
  insertEnrollment,
} from '../store/enrollments.js'
import type { Grants } from '../store/grants.js'

/** The members of others' rows that mean something here. */
interface Told {
  readonly enrollmentWanted?: EnrollmentWish // identity
  readonly enrollmentId?: string | null // authenticator: by which it came; router: by which it may come
  readonly isVerified?: boolean // router: it has enrolled
  readonly isEdge?: boolean // router: of the edge, or transit
}

type Effect = (tx: Tx, change: Change, told: Told | undefined) => Promise<readonly RowChange[]>

async function inOrder(tx: Tx, changes: readonly Change[], effect: Effect): Promise<readonly RowChange[]> {
  const own: RowChange[] = []
  for (const change of changes) own.push(...(await effect(tx, change, toldBy(change))))
  return own
}

const toldBy = ({ json }: Change): Told | undefined =>
  json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as Told) : undefined

/** Rows of a load have no time of their own. What is younger than this may belong to something newer than the load. */
const beforeTheLoad = (): Date => new Date(Date.now() - 3_600_000)

/** An identity that wants an enrollment gets it; what its redeeming left behind goes, and all goes with the identity. */
export function identityEffects(grants: Grants): Effects {
  const effect: Effect = async (tx, { kind, id }, told) => {
    if (kind === 'authenticators') return told?.enrollmentId ? endEnrollment(tx, told.enrollmentId) : []
    if (!told) return endOfOwner(tx, id)
    return told.enrollmentWanted ? insertEnrollment(tx, await grants.made(told.enrollmentWanted)) : []
  }
  return {
    kinds: ['identities', 'authenticators'],
    concerns(change) {
      const told = toldBy(change)
      if (change.kind === 'authenticators') return Boolean(told?.enrollmentId)
      return !told || told.enrollmentWanted !== undefined
    },
    apply: (tx, changes) => inOrder(tx, changes, effect),
    async reload(tx, rows) {
      const living = rows.filter(({ kind }) => kind === 'identities').map(({ id }) => id)
      return [...(await inOrder(tx, rows, effect)), ...(await endOfAllBut(tx, living, beforeTheLoad()))]
    },
  }
}

/** A router that has not enrolled has the one enrollment that it names, all others have none. */
export function sessionsEffects(grants: Grants): Effects {
  const effect: Effect = async (tx, { id }, told) => {
    if (!told) return endOfOwner(tx, id)
    if (told.isVerified || !told.enrollmentId) return endOfRouterBut(tx, id)
    const made = await grants.made(wishOf(id, told.enrollmentId, told.isEdge !== false))
    return [...(await endOfRouterBut(tx, id, made.id)), ...(await insertEnrollment(tx, made))]
  }
  const apply: Effects['apply'] = (tx, changes) => inOrder(tx, changes, effect)
  return { kinds: ['edge-routers', 'transit-routers'], apply, reload: apply }
}

const wishOf = (routerId: string, id: string, isEdge: boolean): EnrollmentWish =>
  isEdge
    ? { ...noWish, id, method: 'erott', edgeRouterId: routerId }
    : { ...noWish, id, method: 'trott', transitRouterId: routerId }
