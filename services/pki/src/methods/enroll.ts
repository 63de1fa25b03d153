import { openLimit, type Queue, untilAborted } from '@overlay/platform/async'
import {
  type Actor,
  AFTER_COMMIT_MS,
  afterCommit,
  type ChangeLog,
  type Consumer,
  withDeadline,
} from '@overlay/platform/change-log'
import { batch } from '@overlay/platform/postgres'
import {
  type Context,
  type EnrollRequest,
  type EnrollResponse,
  Fault,
  faults,
  ownContext,
} from '@overlay/rpc'
import type { Ahead } from '../consumers/eager-steps.js'
import { ott, ottca, updb } from '../enroll/identity-methods.js'
import type { Admitted, Issued, Method, Offer, Owners } from '../enroll/method.js'
import { erott, type RouterNaming, trott } from '../enroll/router-methods.js'
import type { Keyring } from '../keys/keyring.js'
import { claim, endEnrollments, findByToken, release, type StoredEnrollment } from '../store/enrollments.js'

export interface Enrolling {
  readonly changeLog: ChangeLog
  readonly owners: Owners
  /** Enrollments end, at the latest, when the owner's changes say that they are redeemed. */
  readonly followed: Readonly<Record<keyof Owners, Pick<Consumer, 'waitFor'>>>
  readonly ended: Ahead
  readonly routerNaming: RouterNaming
  keyring(): Promise<Keyring>
  /** For checking and signing, which take milliseconds of a core. */
  readonly queued: Queue
  readonly now: () => Date
}

/** Makes a token into an identity or a router. The order of the steps is the order of the checks. */
export function enroller(
  enrolling: Enrolling,
): (request: EnrollRequest, context: Context) => Promise<EnrollResponse> {
  const { changeLog, owners } = enrolling
  const methods: Partial<Record<string, Method>> = {
    ott: ott(owners),
    ottca: ottca(owners, changeLog.db),
    updb: updb(owners),
    erott: erott(owners, enrolling.routerNaming),
    trott: trott(owners, enrolling.routerNaming),
  }

  const ended = ending(enrolling)

  return async (request, context) => {
    const enrollment = await findByToken(changeLog.db, request.token)
    if (!enrollment) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    // differs: for every method, not only for routers
    if (enrollment.expiresAt <= enrolling.now()) throw new Fault('ENROLLMENT_EXPIRED')
    const read = methods[enrollment.method]
    // wire: the enrollment's own method decides, unless the request is for one alone
    if (!read || (request.method && request.method !== enrollment.method))
      throw new Fault('INVALID_ENROLLMENT_TOKEN')

    const offer = await enrolling.queued(() => read(request, enrollment, context), context.signal)
    if (!(await claim(changeLog.db, enrollment, offer.hash))) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    const { issued, admitted } = await redeem(enrolling, enrollment, offer, context)
    await ended(enrollment, admitted, context)
    if (!admitted.isFirst) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    return { method: enrollment.method, ...issued }
  }
}

async function redeem(
  { changeLog, keyring, queued }: Enrolling,
  enrollment: StoredEnrollment,
  offer: Offer,
  context: Context,
): Promise<{ readonly issued: Issued; readonly admitted: Admitted }> {
  try {
    const issued = await queued(async () => offer.issue(await keyring()), context.signal)
    return { issued, admitted: await offer.admit(issued, context) }
  } catch (err) {
    // refused: nothing came of it. Whatever else it was, the owner may have heard: the claim runs out by itself
    if (isRefusal(err)) await release(changeLog.db, enrollment, offer.hash)
    if (err instanceof Fault && err.code === 'NOT_FOUND')
      throw new Fault('INVALID_ENROLLMENT_TOKEN', undefined, err)
    throw err
  }
}

const isRefusal = (err: unknown): boolean => err instanceof Fault && faults[err.code][0] < 500

/** The owner has it: should this fail or take too long, it comes to the same end later. */
function ending({ changeLog, followed, ended }: Enrolling) {
  const own = ownContext(new AbortController().signal)
  const end = batch(async (entries: readonly (Actor & { readonly id: string })[]) => {
    const ids = entries.map(({ id }) => id)
    await changeLog.write(withDeadline(own), async (tx) => {
      const gone = await endEnrollments(tx, ids)
      const changes = gone.map((change) => ({ ...change, by: entries.find(({ id }) => id === change.id) }))
      return { result: undefined, changes }
    })
    return ids.map(() => true)
  })
  return async ({ id, identityId }: StoredEnrollment, { position }: Admitted, context: Context) => {
    using limit = openLimit(AFTER_COMMIT_MS, context.signal)
    const step = identityId
      ? ended.doing(id, () => end({ id, ...context }))
      : position && followed.sessions.waitFor(position, limit.signal)
    await afterCommit(changeLog, Promise.race([step, untilAborted(limit.signal)]))
  }
}
