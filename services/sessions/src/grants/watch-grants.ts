import { type Methods, ownContext, type PolicyServiceService, type Positions } from '@overlay/rpc'
import { type FollowLog, followStream } from '@overlay/store/change-log'

/** The stream of policy that names the identities whose lists of services or grants change. */
export interface GrantWatch extends AsyncDisposable {
  /** True: what was not dropped is as of at most two seconds ago. */
  isFresh(): boolean
  /** True: policy is of an earlier release, which does not name the routers of identities. */
  lacksRouters(): boolean
  /** The positions up to which changes have been announced. */
  positions(): Positions
  /** Called before `positions` move. After an interruption of the stream with `all`. */
  onChange(listener: GrantListener): void
  /** Called after each message: at least once a second. */
  onMessage(listener: () => void): void
}

export type GrantListener = (identityIds: readonly string[] | 'all') => void

export function watchGrants(
  policy: Pick<Methods<PolicyServiceService>, 'watchHeaders'>,
  log: FollowLog,
): GrantWatch {
  const listeners: GrantListener[] = []
  const messageListeners: (() => void)[] = []
  const announce = (ids: readonly string[] | 'all'): void => {
    for (const listener of listeners) listener(ids)
  }
  let lacksRouters = false
  async function* open(signal: AbortSignal) {
    let isFirst = true
    for await (const message of policy.watchHeaders({ grants: true }, ownContext(signal))) {
      if (isFirst) announce('all') // earlier changes were missed
      isFirst = false
      yield message
    }
  }
  const followed = followStream(
    'policy grants',
    log,
    open,
    ({ identityIds, all, routers, positions }) => {
      lacksRouters = !routers
      if (all) announce('all')
      else if (identityIds.length > 0) announce(identityIds)
      for (const listener of messageListeners) listener()
      return positions
    },
    ({ ageMs }) => ageMs,
  )
  return {
    isFresh: followed.isFresh,
    lacksRouters: () => lacksRouters,
    positions: followed.positions,
    onChange: (listener) => void listeners.push(listener),
    onMessage: (listener) => void messageListeners.push(listener),
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  }
}
