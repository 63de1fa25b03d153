import { type Check, type CheckDeps, copies } from '@overlay/maintenance'
import { authenticator, identity } from '@overlay/model'
import { pushAll } from '@overlay/process/async'
import { type Change, EnrollmentWish } from '@overlay/rpc'
import type { ConsumerDefinition, RowChange } from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import type { Tx } from '@overlay/store/postgres'
import type { Enrollment } from '../domain/enrollment.js'
import type { EnrollmentIssuer } from '../keys/enrollment-issuer.js'
import { endEnrollments, endEnrollmentsOfOwners } from '../store/ended-enrollments.js'
import { insertEnrollments } from '../store/enrollments.js'
import { type ConsumerDeps, endEnrollmentsOfDeleted, ownerChecks } from './owners.js'

interface Extra {
  readonly enrollmentWanted: EnrollmentWish
  /** Of loaded rows: the enrollment with which the identity was created. */
  readonly enrollmentPromised: Partial<EnrollmentWish>
}

const decodeIdentity = payloadDecoder<typeof identity, Extra>(identity)
const decodeAuthenticator = payloadDecoder(authenticator)

/** Identity expects what it has requested: it need not note the enrollment. */
const asRequested = (change: RowChange): RowChange => ({
  ...change,
  payload: { ...change.payload, isNew: true },
})

/** What a change of identity means here. */
interface Step {
  readonly sort: 'requested' | 'redeemed' | 'deleted'
  readonly id: string // of the enrollment; 'deleted': of the identity
  readonly wish?: EnrollmentWish
}

function stepOf(change: Change): Step | undefined {
  if (change.kind === authenticator.kind) {
    const enrollmentId = decodeAuthenticator(change)?.enrollmentId
    return enrollmentId ? { sort: 'redeemed', id: enrollmentId } : undefined
  }
  const payload = decodeIdentity(change)
  if (!payload) return { sort: 'deleted', id: change.id }
  const { enrollmentWanted: wish } = payload
  return wish && { sort: 'requested', id: wish.id, wish }
}

export interface IdentityConsumer extends ConsumerDefinition {
  /** The effect of rows of a load. */
  applyLoaded(tx: Tx, rows: readonly Change[]): Promise<readonly RowChange[]>
}

/** Consecutive steps of one sort, which share a statement. */
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
 * The enrollments with which these identities were created, unless they have expired. A wish is in one change only, which
 * a load may have skipped, and a failover may have lost the enrollment. What exists or has ended is not granted again.
 */
const promisedTo = (changes: readonly Change[], issuer: EnrollmentIssuer): readonly Enrollment[] =>
  changes.flatMap((change) => {
    if (change.kind !== identity.kind) return []
    const { enrollmentPromised: promised, createdAt } = decodeIdentity(change) ?? {}
    if (!promised || !createdAt) return []
    const wish = EnrollmentWish.fromPartial({ ...promised, identityId: change.id })
    return issuer.issueAsOf(wish, new Date(createdAt)) ?? []
  })

/** Grants the enrollment that a change of an identity requests, ends the redeemed one, and ends all of a deleted identity. */
export function identityConsumer({ source, issuer, names }: ConsumerDeps): IdentityConsumer {
  const applyRun = async (tx: Tx, run: readonly Step[]): Promise<readonly RowChange[]> => {
    const ids = run.map(({ id }) => id)
    switch (run[0]?.sort) {
      case 'requested':
        return (
          await insertEnrollments(
            tx,
            run.flatMap(({ wish }) => (wish ? issuer.issue(wish) : [])),
          )
        ).map(asRequested)
      case 'redeemed':
        return endEnrollments(tx, ids)
      default:
        return endEnrollmentsOfOwners(tx, 'identities', ids)
    }
  }
  const apply = async (tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> => {
    const own: RowChange[] = []
    for (const run of runsOf(changes)) pushAll(own, await applyRun(tx, run))
    return own
  }
  const applyLoaded = async (tx: Tx, changes: readonly Change[]): Promise<readonly RowChange[]> => {
    const promised = promisedTo(changes, issuer)
    const granted = promised.length > 0 ? await insertEnrollments(tx, promised) : []
    return [...granted, ...(await apply(tx, changes))]
  }
  return {
    source,
    applyLoaded,
    recordsDeletionsOf: [identity.kind],
    effects: {
      kinds: [identity.kind, authenticator.kind],
      concerns: (change) => stepOf(change) !== undefined,
      apply,
      async reload(tx, rows) {
        const own: RowChange[] = []
        for (const kind of [identity.kind, authenticator.kind])
          for await (const page of rows.pages(kind)) pushAll(own, await applyLoaded(tx, page))
        pushAll(own, await endEnrollmentsOfDeleted(tx, names, 'identities', rows))
        return own
      },
    },
  }
}

export const identityChecks = (
  { source, effects, applyLoaded }: IdentityConsumer,
  deps: CheckDeps,
): readonly Check[] => [
  copies(deps, { source, kinds: effects.kinds, apply: applyLoaded }),
  ...ownerChecks(deps, 'identities'),
]
