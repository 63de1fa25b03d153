import type { CreateApiSessionRequest } from '@overlay/channel'
import { edgeErrorCode } from '@overlay/channel'
import { Fault, type IdentityServiceService, type Methods, ownContext } from '@overlay/rpc'
import type { RouterChannel } from '../channel/router-channel.js'
import { AccessRefused } from '../domain/router-access.js'
import { showableMembers } from '../domain/router-text.js'
import { NEW_SESSION_MS, ROUTER_SESSION_MS } from '../limits.js'

/** How the identity of a router hosts services. */
export interface Hosting {
  readonly defaultHostingCost: number
  readonly defaultHostingPrecedence: string
  readonly serviceHostingCosts: Readonly<Record<string, number>>
  readonly serviceHostingPrecedences: Readonly<Record<string, string>>
  readonly appData: object
}

/** The API session of a router that is an identity itself. */
export interface RouterSession {
  readonly id: string
  readonly token: string
  readonly identityId: string
  readonly identityName: string
  readonly configTypes: readonly string[]
  readonly timeoutSeconds: number
  readonly hosting: Hosting
}

export interface RouterSessionDeps {
  readonly identity: Pick<Methods<IdentityServiceService>, 'openRouterSession'>
  readonly apiSessions: { byId(id: string): unknown }
  /** In milliseconds. */
  readonly now?: () => number
}

export type RouterSessions = ReturnType<typeof openRouterSessions>

interface Entry {
  readonly opening: Promise<RouterSession>
  openedAt: number
  reported: string
}

export function openRouterSessions({
  identity,
  apiSessions,
  now = () => performance.now(),
}: RouterSessionDeps) {
  const entries = new Map<RouterChannel, Entry>()

  /** Opens the API session, or finds it. Throws AccessRefused. */
  function open(router: RouterChannel, request: Partial<CreateApiSessionRequest>): Promise<RouterSession> {
    const former = entries.get(router)
    const openOne = () => call(identity, router.routerId, request)
    // one at a time: each locks the row of the router's identity, and the database has few connections
    const opening = former ? former.opening.then(openOne, openOne) : openOne()
    const entry: Entry = {
      opening,
      openedAt: Number.POSITIVE_INFINITY,
      reported: former?.reported ?? '',
    }
    if (!router.channel.closed.aborted) entries.set(router, entry)
    opening.then(
      () => {
        entry.openedAt = now()
      },
      () => {
        if (entries.get(router) === entry) entries.delete(router)
      },
    )
    return opening
  }

  return {
    open,
    /** The same, without a call if it is known to exist. */
    async of(router: RouterChannel): Promise<RouterSession> {
      const entry = entries.get(router)
      if (!entry) return open(router, {})
      const session = await entry.opening
      const isAlive = apiSessions.byId(session.id) !== undefined || now() - entry.openedAt < NEW_SESSION_MS
      return isAlive ? session : open(router, {})
    },
    /** Of a router that may be connected to another replica. */
    ofId: (routerId: string): Promise<RouterSession> => call(identity, routerId, {}),
    /** True once for each API session: the router must learn of it. */
    isNews(router: RouterChannel, { token }: RouterSession): boolean {
      const entry = entries.get(router)
      if (!entry || entry.reported === token) return false
      entry.reported = token
      return true
    },
    forget: (router: RouterChannel): void => void entries.delete(router),
  }
}

async function call(
  identity: RouterSessionDeps['identity'],
  routerId: string,
  { configTypes = [], envInfo, sdkInfo }: Partial<CreateApiSessionRequest>,
): Promise<RouterSession> {
  const json = (info: object | undefined) => Buffer.from(info ? JSON.stringify(showableMembers(info)) : '')
  try {
    const { session, hosting } = await identity.openRouterSession(
      { routerId, configTypes, envInfo: json(envInfo), sdkInfo: json(sdkInfo) },
      ownContext(AbortSignal.timeout(ROUTER_SESSION_MS)),
    )
    if (!session) throw new Error('answer without a session')
    return { ...session, hosting: JSON.parse(hosting.toString()) }
  } catch (err) {
    if (err instanceof Fault && err.code === 'NOT_FOUND')
      throw new AccessRefused(edgeErrorCode.tunnelingNotEnabled, 'tunneling not enabled')
    throw err
  }
}
