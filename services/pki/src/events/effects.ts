import type { Effects, RowChange, Tx } from '@overlay/platform'
import type { Change, EnrollmentWish } from '@overlay/rpc'
import {
  endEnrollment,
  endOfAllBut,
  endOfIdentity,
  endOfRouter,
  insertEnrollment,
} from '../store/enrollments.js'
import type { Grants } from '../store/grants.js'

/** The members of others' rows that mean something here. */
interface Told {
  readonly enrollmentWanted?: EnrollmentWish // identity
  readonly enrollmentId?: string | null // authenticator: by which it came
  readonly isVerified?: boolean // edge router: it has enrolled
}

type Effect = (tx: Tx, change: Change, told: Told | undefined) => Promise<readonly RowChange[]>

async function inOrder(tx: Tx, changes: readonly Change[], effect: Effect): Promise<readonly RowChange[]> {
  const own: RowChange[] = []
  for (const change of changes) {
    const { json } = change
    const told = json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as Told) : undefined
    own.push(...(await effect(tx, change, told)))
  }
  return own
}

/** Rows of a load have no time of their own. What is younger than this may belong to something newer than the load. */
const beforeTheLoad = (): Date => new Date(Date.now() - 3_600_000)

/** An identity that wants an enrollment gets it; what its redeeming left behind goes, and all goes with the identity. */
export function identityEffects(grants: Grants): Effects {
  const effect: Effect = async (tx, { kind, id }, told) => {
    if (kind === 'authenticators') return told?.enrollmentId ? endEnrollment(tx, told.enrollmentId) : []
    if (!told) return endOfIdentity(tx, id)
    return told.enrollmentWanted ? insertEnrollment(tx, await grants.made(told.enrollmentWanted)) : []
  }
  return {
    kinds: ['identities', 'authenticators'],
    apply: (tx, changes) => inOrder(tx, changes, effect),
    async reload(tx, rows) {
      const living = rows.filter(({ kind }) => kind === 'identities').map(({ id }) => id)
      return [...(await inOrder(tx, rows, effect)), ...(await endOfAllBut(tx, living, beforeTheLoad()))]
    },
  }
}

/** What the redeeming of a router's enrollment left behind goes, and all goes with the router. */
export function sessionsEffects(): Effects {
  const effect: Effect = async (tx, { id, atMs }, told) => {
    if (!told) return endOfRouter(tx, id)
    return told.isVerified ? endOfRouter(tx, id, atMs > 0 ? new Date(atMs) : beforeTheLoad()) : []
  }
  const apply: Effects['apply'] = (tx, changes) => inOrder(tx, changes, effect)
  return { kinds: ['edge-routers'], apply, reload: apply }
}
