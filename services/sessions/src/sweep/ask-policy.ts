import { pagesOf } from '@overlay/process/async'
import {
  Access,
  type Context,
  type Methods,
  ownContext,
  type PolicyServiceService,
  type Positions,
} from '@overlay/rpc'
import type { Names } from '@overlay/store/kind-store'
import { type AccessChanges, accessChanges, type SessionAccess } from '../domain/session-access.js'
import { NAMES_PER_CALL, SESSIONS_PER_CALL, SWEEP_CALL_MS } from '../limits.js'

/** The questions of a sweep to policy. */
export type AccessPolicy = Pick<Methods<PolicyServiceService>, 'findLost' | 'findRequiring'>

/** Reads the heads of the change logs that decide about access. */
export type Heads = () => Promise<Positions>

/** The context of a call by this service, to be answered as of these positions or later. */
export const callAt = (positions: Positions): Context => ({
  ...ownContext(AbortSignal.timeout(SWEEP_CALL_MS)),
  positions,
})

/** Asks policy about the access of these sessions, as of the positions of the context or later. */
export async function findAccessChanges(
  policy: Pick<AccessPolicy, 'findLost'>,
  sessions: readonly SessionAccess[],
  context: Context,
): Promise<AccessChanges> {
  const changes = await Promise.all(
    pagesOf(sessions, SESSIONS_PER_CALL).map(async (page) => {
      const held = page.map(({ apiSessionId, identityId, serviceId, type, postureAtRouters }) => ({
        apiSessionId,
        identityId,
        serviceId,
        postureAtRouters,
        access: type === 'Dial' ? Access.ACCESS_DIAL : Access.ACCESS_BIND,
      }))
      return accessChanges(page, await policy.findLost({ held }, context))
    }),
  )
  return { lost: changes.flatMap(({ lost }) => lost), moved: changes.flatMap(({ moved }) => moved) }
}

/** The entities among these that do not exist, as their owner answers. */
export async function findMissing(
  names: Names,
  kind: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const pages = pagesOf([...new Set(ids)], NAMES_PER_CALL)
  const answers = await Promise.all(pages.map((page) => names(kind, page, callAt({}))))
  return new Set(ids.filter((id) => !answers.some((answer) => answer.has(id))))
}
