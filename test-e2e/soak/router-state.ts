/** What routers have, as administrators see it. */
export interface RouterState {
  readonly routers: readonly Router[]
  readonly terminators: readonly Terminator[]
  readonly links: readonly Link[]
  readonly circuits: readonly Circuit[]
}

interface Reference {
  readonly id: string
}

export interface Router extends Reference {
  readonly fingerprint: string | null
  readonly isVerified: boolean
  readonly isOnline: boolean
  readonly disabled: boolean
}

export interface Terminator extends Reference {
  readonly serviceId: string
  readonly routerId: string
  readonly binding: string
  readonly precedence: string
  readonly cost: number
}

export interface Link extends Reference {
  readonly sourceRouter: Reference
  readonly destRouter: Reference
  readonly state: string
  readonly down: boolean
}

export interface Circuit extends Reference {
  readonly path: { readonly nodes: readonly Reference[] }
}

/**
 * What has changed for the routers of `before`, and what a router without grants has, as texts. Ids and directions of
 * links and ids of terminators may change, since routers connect and report again.
 */
export function routerChanges(before: RouterState, now: RouterState, hostileId: string): string[] {
  const ids = new Set(before.routers.map(({ id }) => id))
  const routers = ({ routers }: RouterState): string[] =>
    routers
      .filter(({ id }) => ids.has(id))
      .map(
        ({ id, fingerprint, isVerified, isOnline, disabled }) =>
          `router ${id} ${fingerprint} verified ${isVerified} online ${isOnline} disabled ${disabled}`,
      )
  const terminators = ({ terminators }: RouterState): string[] =>
    terminators
      .filter(({ routerId }) => ids.has(routerId))
      .map(
        ({ serviceId, routerId, binding, precedence, cost }) =>
          `terminator of ${serviceId} at ${routerId} ${binding} ${precedence} ${cost}`,
      )
  const links = ({ links }: RouterState): string[] =>
    links
      .filter(({ sourceRouter, destRouter }) => ids.has(sourceRouter.id) && ids.has(destRouter.id))
      .map(
        ({ sourceRouter, destRouter, state, down }) =>
          `link between ${[sourceRouter.id, destRouter.id].sort().join(' and ')} ${state} down ${down}`,
      )
  const changes = (of: (state: RouterState) => string[]): string[] => {
    const distinct = (state: RouterState): string[] => [...new Set(of(state))].sort()
    const [was, is] = [distinct(before), distinct(now)]
    return was.join() === is.join() ? [] : [`want ${JSON.stringify(was)}, found ${JSON.stringify(is)}`]
  }
  return [
    ...changes(routers),
    ...changes(terminators),
    ...changes(links),
    ...now.terminators
      .filter(({ routerId }) => routerId === hostileId)
      .map(({ serviceId }) => `terminator of ${serviceId} at the hostile router`),
    ...now.circuits
      .filter(({ path }) => path.nodes.some(({ id }) => id === hostileId))
      .map(({ id }) => `circuit ${id} over the hostile router`),
  ]
}
