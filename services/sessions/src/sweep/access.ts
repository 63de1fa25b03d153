import type { Names } from '@overlay/platform/kind-store'
import {
  Access,
  type ChangeServiceService,
  type Context,
  type Methods,
  ownContext,
  type PolicyServiceService,
  type Positions,
} from '@overlay/rpc'
import { type HeldSession, UNDETERMINED } from '../store/session.js'

export type AskPolicy = Pick<Methods<PolicyServiceService>, 'findLost' | 'findRequiring'>

/** Sessions whose access exists no more, and the others that another policy grants now. */
export interface Standing {
  readonly lost: readonly string[]
  readonly moved: readonly { readonly id: string; readonly granting: string }[]
}

/** The ends of the histories that access follows from, of the owners that answer. */
export type Heads = () => Promise<Positions>

type Owner = Pick<Methods<ChangeServiceService>, 'head'>

export const headsOf =
  (owners: Readonly<Record<string, Owner>>): Heads =>
  async () => {
    const context = ownContext(AbortSignal.timeout(HEAD_MS))
    const asked = Object.entries(owners).map(async ([schema, owner]) => [
      [schema, await owner.head({}, context)] as const,
    ])
    const answers = await Promise.allSettled(asked)
    return Object.fromEntries(
      answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])),
    )
  }

const HEAD_MS = 1000
const PER_CALL = 1000
const NAMES_PER_CALL = 500
const ASK_MS = 10_000

/** For questions of our own, answered as of these positions or later. */
export const askingAt = (positions: Positions): Context => ({
  ...ownContext(AbortSignal.timeout(ASK_MS)),
  positions,
})

/** Asks policy about these sessions, as it sees them at the positions of the context or later. */
export async function standingOf(
  policy: Pick<AskPolicy, 'findLost'>,
  sessions: readonly HeldSession[],
  context: Context,
): Promise<Standing> {
  const pages = pagesOf(sessions, PER_CALL)
  const standings = await Promise.all(pages.map((page) => ask(policy, page, context)))
  return { lost: standings.flatMap(({ lost }) => lost), moved: standings.flatMap(({ moved }) => moved) }
}

/** The sessions among these whose access exists no more. */
export async function lostOf(
  policy: Pick<AskPolicy, 'findLost'>,
  sessions: readonly HeldSession[],
  context: Context,
): Promise<readonly string[]> {
  const { lost } = await standingOf(policy, sessions, context)
  return lost
}

async function ask(
  policy: Pick<AskPolicy, 'findLost'>,
  sessions: readonly HeldSession[],
  context: Context,
): Promise<Standing> {
  const held = sessions.map(({ apiSessionId, identityId, serviceId, type }) => ({
    apiSessionId,
    identityId,
    serviceId,
    access: type === 'Dial' ? Access.ACCESS_DIAL : Access.ACCESS_BIND,
  }))
  const { lost, granting } = await policy.findLost({ held }, context)
  const moved = sessions.flatMap(({ id, grantingPolicyId }, i) => {
    const now = granting[i] ?? UNDETERMINED
    return lost[i] || now === grantingPolicyId ? [] : [{ id, granting: now }]
  })
  return { lost: sessions.flatMap(({ id }, i) => (lost[i] ? [id] : [])), moved }
}

/** Sessions whose API session does not exist. */
export async function withoutApiSession(
  names: Names,
  sessions: readonly HeldSession[],
  context: Context,
): Promise<readonly string[]> {
  const ids = [...new Set(sessions.map(({ apiSessionId }) => apiSessionId))]
  const found = await Promise.all(
    pagesOf(ids, NAMES_PER_CALL).map((page) => names('api-sessions', page, context)),
  )
  const isThere = (id: string): boolean => found.some((named) => named.has(id))
  return sessions.flatMap(({ id, apiSessionId }) => (isThere(apiSessionId) ? [] : [id]))
}

function pagesOf<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  const pages: (readonly T[])[] = []
  for (let from = 0; from < all.length; from += size) pages.push(all.slice(from, from + size))
  return pages
}
