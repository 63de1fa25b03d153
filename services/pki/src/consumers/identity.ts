import { pushAll } from '@overlay/platform/async'
import type { Effects, LoadedRows, RowChange } from '@overlay/platform/change-log'
import { deletedSince, type Names } from '@overlay/platform/kind-store'
import type { Tx } from '@overlay/platform/postgres'
import type { Change, EnrollmentWish } from '@overlay/rpc'
import { noWish } from '../domain/enrollment.js'
import type { Grants } from '../keys/enrollment-issuer.js'
import {
  endEnrollments,
  endOfOwners,
  endOfRouterBut,
  insertEnrollments,
  namedOwners,
  type OwnerKind,
  routersInStep,
} from '../store/enrollments.js'
import type { Ahead } from './eager-steps.js'

/** The members of others' rows that mean something here. */
interface Told {
  readonly enrollmentWanted?: EnrollmentWish // identity
  readonly enrollmentId?: string | null // authenticator: by which it came; router: by which it may come
  readonly isVerified?: boolean // router: it has enrolled
  readonly isEdge?: boolean // router: of the edge, or transit
}

const toldBy = ({ json }: Change): Told | undefined =>
  json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as Told) : undefined

/** What a change of identity means here. */
interface Step {
  readonly sort: 'wanted' | 'redeemed' | 'gone'
  readonly id: string // of the identity, or of the redeemed enrollment
  readonly wish?: EnrollmentWish
}

function stepOf(change: Change): Step | undefined {
  const told = toldBy(change)
  if (change.kind === 'authenticators')
    return told?.enrollmentId ? { sort: 'redeemed', id: told.enrollmentId } : undefined
  if (!told) return { sort: 'gone', id: change.id }
  return told.enrollmentWanted && { sort: 'wanted', id: change.id, wish: told.enrollmentWanted }
}

/** Neighbours of one sort, which go in one statement. */
function runsOf(changes: readonly Change[]): readonly (readonly Step[])[] {
  const runs: Step[][] = []
  for (const step of changes.flatMap((change) => stepOf(change) ?? [])) {
    const run = runs.at(-1)
    if (run?.[0]?.sort === step.sort) run.push(step)
    else runs.push([step])
  }
  return runs
}

/**
 * An identity that wants an enrollment gets it; what is redeemed goes, and all goes with the identity. Wishes that were
 * granted ahead, and enrollments that were ended ahead, stay so for good: changes that say it do nothing more.
 */
export function identityEffects(
  grants: Grants,
  names: Names,
  ahead?: { readonly granted: Ahead; readonly ended: Ahead },
): Effects {
  const take = async (tx: Tx, run: readonly Step[]): Promise<readonly RowChange[]> => {
    const ids = run.map(({ id }) => id)
    switch (run[0]?.sort) {
      case 'wanted':
        return insertEnrollments(
          tx,
          await Promise.all(run.flatMap(({ wish }) => (wish ? grants.made(wish) : []))),
        )
      case 'redeemed':
        return endEnrollments(tx, ids)
      default:
        return endOfOwners(tx, 'identities', ids)
    }
  }
  const apply = async (tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> => {
    const own: RowChange[] = []
    for (const run of runsOf(changes)) pushAll(own, await take(tx, run))
    return own
  }
  return {
    kinds: ['identities', 'authenticators'],
    async concerns(change) {
      const step = stepOf(change)
      if (step?.wish) return !(await ahead?.granted.hasDone(step.wish.id))
      if (step?.sort === 'redeemed') return !(await ahead?.ended.hasDone(step.id))
      return step !== undefined
    },
    apply,
    async reload(tx, rows) {
      const own: RowChange[] = []
      for (const kind of ['identities', 'authenticators'])
        for await (const page of rows.pages(kind)) pushAll(own, await apply(tx, page))
      return [...own, ...(await endOfGone(tx, names, 'identities', rows))]
    },
  }
}

/** A router that has not enrolled has the one enrollment that it names, all others have none. */
export function sessionsEffects(grants: Grants, names: Names): Effects {
  const follow = async (
    tx: Tx,
    { id, kind }: Change,
    told: Told | undefined,
  ): Promise<readonly RowChange[]> => {
    if (!told) return endOfOwners(tx, kind === 'transit-routers' ? kind : 'edge-routers', [id])
    const enrollmentId = enrollmentOf(told)
    if (!enrollmentId) return endOfRouterBut(tx, id)
    const made = await grants.made(wishOf(id, enrollmentId, told.isEdge !== false))
    return [...(await endOfRouterBut(tx, id, made.id)), ...(await insertEnrollments(tx, [made]))]
  }
  const apply = async (tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> => {
    const own: RowChange[] = []
    const inStep = await findInStep(tx, changes)
    for (const change of changes)
      if (!inStep.has(change.id)) pushAll(own, await follow(tx, change, toldBy(change)))
    return own
  }
  return {
    kinds: routerKinds,
    apply,
    async reload(tx, rows) {
      const own: RowChange[] = []
      for (const kind of routerKinds) {
        for await (const page of rows.pages(kind)) pushAll(own, await apply(tx, page))
        pushAll(own, await endOfGone(tx, names, kind, rows))
      }
      return own
    },
  }
}

/** The enrollment by which the router may come in. */
const enrollmentOf = ({ isVerified, enrollmentId }: Told): string | null =>
  (!isVerified && enrollmentId) || null

/**
 * Routers for which there is nothing to do. A token costs a signature, so none is made to compare. A router that
 * changes twice is followed through both changes.
 */
async function findInStep(tx: Tx, changes: readonly Change[]): Promise<ReadonlySet<string>> {
  const places = new Map<string, number>()
  for (const { id } of changes) places.set(id, (places.get(id) ?? 0) + 1)
  const routers = changes.flatMap((change) => {
    const told = toldBy(change)
    return told && places.get(change.id) === 1 ? [{ id: change.id, enrollmentId: enrollmentOf(told) }] : []
  })
  return routers.length > 0 ? routersInStep(tx, routers) : new Set()
}

const routerKinds = ['edge-routers', 'transit-routers'] as const

const endOfGone = async (
  tx: Tx,
  names: Names,
  kind: OwnerKind,
  rows: LoadedRows,
): Promise<readonly RowChange[]> =>
  endOfOwners(tx, kind, await deletedSince(tx, names, kind, rows, namedOwners(kind)))

const wishOf = (routerId: string, id: string, isEdge: boolean): EnrollmentWish =>
  isEdge
    ? { ...noWish, id, method: 'erott', edgeRouterId: routerId }
    : { ...noWish, id, method: 'trott', transitRouterId: routerId }
