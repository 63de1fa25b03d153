import { openLimit } from '@overlay/process/async'
import {
  type Context,
  type EnrollRequest,
  type EnrollResponse,
  Fault,
  faults,
  type Methods,
  type PkiServiceService,
  sourceOf,
} from '@overlay/rpc'
import { afterBadToken } from '@overlay/service'
import { AFTER_COMMIT_MS, afterCommit } from '@overlay/store/change-log'
import type { EnrollMethod, Issued, Redemption, Registration } from '../enroll/enroll-method.js'
import { ott, ottca, updb } from '../enroll/identity-methods.js'
import { erott, trott } from '../enroll/router-methods.js'
import { claim, enrollmentsByToken, release, type StoredEnrollment } from '../store/enrollments.js'
import type { MethodDeps } from './method-deps.js'

/** Redeems a token: adds an authenticator to its identity, or admits its router. The steps are the order of checks. */
export function enroll(deps: MethodDeps): Methods<PkiServiceService>['enroll'] {
  const { changeLog, owners, routerNaming, queue, now, noteRefusal } = deps
  const methods: Partial<Record<string, EnrollMethod>> = {
    ott: ott(owners, now),
    ottca: ottca(owners, changeLog.db),
    updb: updb(owners),
    erott: erott(owners, routerNaming),
    trott: trott(owners, routerNaming),
  }
  const ended = untilEnded(deps)
  const findByToken = enrollmentsByToken(changeLog.db)

  async function redeemToken(
    request: EnrollRequest,
    enrollment: StoredEnrollment | undefined,
    context: Context,
  ): Promise<EnrollResponse> {
    if (!enrollment) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    // differs: for every method, not only for routers
    if (enrollment.expiresAt <= now()) throw new Fault('ENROLLMENT_EXPIRED')
    const method = methods[enrollment.method]
    // wire: the enrollment's own method decides, unless the request is for one alone
    if (!method || (request.method && request.method !== enrollment.method))
      throw new Fault('INVALID_ENROLLMENT_TOKEN')

    const redemption = await queue(() => method(request, enrollment, context), context.signal)
    const { hash } = redemption
    if (hash !== undefined && !(await claim(changeLog.db, enrollment, hash)))
      throw new Fault('INVALID_ENROLLMENT_TOKEN')
    const { issued, registration } = await redeem(deps, enrollment, redemption, context)
    await ended(enrollment, registration, context)
    if (!registration.isFirst) throw new Fault('INVALID_ENROLLMENT_TOKEN')
    return { method: enrollment.method, ...issued }
  }

  return async (request, context) => {
    const enrollment = await findByToken(request.token)
    try {
      return await redeemToken(request, enrollment, context)
    } catch (err) {
      if (isRefusal(err))
        noteRefusal(context, {
          method: enrollment?.method ?? (request.method || 'unknown'),
          reason: err.code,
          enrollmentId: enrollment?.id,
          identityId: enrollment?.identityId ?? undefined,
        })
      if (isRefusal(err) && !enrollment)
        throw await afterBadToken(
          deps,
          context,
          { ...badToken, source: sourceOf(context.sourceAddress) },
          err,
        )
      throw err
    }
  }
}

const badToken = {
  kind: 'enrollment',
  limits: { source: { burst: 100, everySeconds: 6 } },
} as const

async function redeem(
  { changeLog, keyring, queue }: MethodDeps,
  enrollment: StoredEnrollment,
  { hash, prepare, issue, register }: Redemption,
  context: Context,
): Promise<{ readonly issued: Issued; readonly registration: Registration }> {
  let isIssued = false
  try {
    if (prepare) await prepare(await keyring())
    const issued = await queue(async () => issue(await keyring()), context.signal)
    isIssued = true
    return { issued, registration: await register(issued, context) }
  } catch (err) {
    // neither a refusal nor a failure before the owner was asked had an effect. After any other failure the owner may have
    // stored it: the claim expires by itself
    if ((isRefusal(err) || !isIssued) && hash !== undefined) await release(changeLog.db, enrollment, hash)
    if (err instanceof Fault && err.code === 'NOT_FOUND')
      throw new Fault('INVALID_ENROLLMENT_TOKEN', undefined, err)
    throw err
  }
}

const isRefusal = (err: unknown): err is Fault => err instanceof Fault && faults[err.code][0] < 500

/** Waits until the redeemed enrollment has ended: the change of its owner that registers the new member ends it. */
const untilEnded =
  ({ changeLog, consumers }: MethodDeps) =>
  async (
    { identityId }: StoredEnrollment,
    { position }: Registration,
    { signal }: Context,
  ): Promise<void> => {
    const consumer = identityId ? consumers.identity : consumers.sessions
    using limit = openLimit(AFTER_COMMIT_MS, signal)
    if (position) await afterCommit(changeLog, consumer.waitFor(position, limit.signal))
  }
