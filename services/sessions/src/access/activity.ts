import { pagesOf, runPeriodically, yielder } from '@overlay/process/async'
import { type IdentityServiceService, type MarkActivityRequest, type Methods, ownContext } from '@overlay/rpc'
import type { Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { ApiSession } from '../domain/api-session.js'
import { ACTIVITY_GATHER_MS, ACTIVITY_PAGE, ACTIVITY_WAIT_MS } from '../limits.js'
import { saveConnections } from '../store/identity-connection.js'
import type { ApiSessions } from './api-sessions.js'

export interface ActivityDeps {
  readonly db: Database
  readonly identity: Pick<Methods<IdentityServiceService>, 'markActivity' | 'reportConnections'>
  readonly apiSessions: Pick<ApiSessions, 'byToken' | 'catchUp'>
  /** False: the API session is of no concern to the router. */
  readonly mayHave: (routerId: string, session: ApiSession) => boolean
  readonly log: Logger
  /** How long reports are gathered. */
  readonly gatherMs?: number
}

/** The API sessions that routers report as connected. */
export function openActivity({
  db,
  identity,
  apiSessions,
  mayHave,
  log,
  gatherMs = ACTIVITY_GATHER_MS,
}: ActivityDeps) {
  let seen = new Map<string, number>() // by id of the API session
  let accessTokens = new Set<string>()
  let identities = new Set<string>()

  async function save(): Promise<void> {
    const [marks, seenTokens, connected] = [[...seen], [...accessTokens], [...identities]]
    seen = new Map()
    accessTokens = new Set()
    identities = new Set()
    // each also where others fail: a session whose use is not marked ends
    const outcomes = await Promise.allSettled([
      markAll(marks, seenTokens),
      report(connected),
      saveAll(connected),
    ])
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  async function saveAll(connected: readonly string[]): Promise<void> {
    for (const page of pagesOf(connected, ACTIVITY_PAGE)) await saveConnections(db, page)
  }

  async function report(connected: readonly string[]): Promise<void> {
    try {
      for (const page of pagesOf(connected, ACTIVITY_PAGE))
        await identity.reportConnections(
          { identityIds: [...page] },
          ownContext(AbortSignal.timeout(ACTIVITY_WAIT_MS)),
        )
    } catch (err) {
      for (const id of connected) identities.add(id) // for the next time
      throw err
    }
  }

  async function markAll(
    marks: readonly (readonly [id: string, atMs: number])[],
    seenTokens: readonly string[],
  ): Promise<void> {
    const mark = (request: MarkActivityRequest) =>
      identity.markActivity(request, ownContext(AbortSignal.timeout(ACTIVITY_WAIT_MS)))
    for (const page of pagesOf(marks, ACTIVITY_PAGE))
      await mark({
        apiSessionIds: page.map(([id]) => id),
        atMs: page.map(([, at]) => at),
        accessTokenIds: [],
      })
    for (const page of pagesOf(seenTokens, ACTIVITY_PAGE))
      await mark({ apiSessionIds: [], atMs: [], accessTokenIds: [...page] })
  }
  const saving = runPeriodically(gatherMs, () =>
    // the next heartbeat, a minute later, marks them again
    save().catch((err: unknown) => log.warn({ err }, 'activity of API sessions not saved')),
  )

  return {
    /** Returns the tokens that no API session of the router has. None if that is not certain. */
    async note(tokens: readonly string[], routerId: string): Promise<readonly string[]> {
      const yieldNow = yielder()
      const noteKnown = async (some: readonly string[]): Promise<string[]> => {
        const unknown: string[] = []
        for (const token of some) {
          const session = apiSessions.byToken(token)
          if (session && mayHave(routerId, session)) {
            seen.set(session.id, Date.now())
            if (session.tokenId) accessTokens.add(session.tokenId)
            identities.add(session.identityId)
          } else unknown.push(token)
          await yieldNow()
        }
        return unknown
      }
      const unknown = await noteKnown(tokens)
      if (unknown.length === 0) return unknown
      const isCurrent = await apiSessions.catchUp(AbortSignal.timeout(ACTIVITY_WAIT_MS)).then(
        () => true,
        () => false,
      )
      return isCurrent ? noteKnown(unknown) : []
    },
    /** The identity is connected to a router. */
    noteIdentity: (id: string): void => void identities.add(id),
    [Symbol.asyncDispose]: () => saving[Symbol.asyncDispose](),
  }
}

export type Activity = ReturnType<typeof openActivity>
