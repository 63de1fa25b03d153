/** Where a circuit runs, and the addresses of its ends. There is a link between each two routers. */
export interface CircuitPath {
  readonly routerIds: readonly string[]
  readonly linkIds: readonly string[]
  readonly ingressAddress: string
  readonly egressAddress: string
}

/** Start: the client. End: the host. */
export type StopType = 'start' | 'link' | 'end'

/** What arrives from one address goes to the other. */
export interface Forward {
  readonly from: string
  readonly to: string
  readonly toType: StopType
}

export interface RouterRoute {
  readonly routerId: string
  readonly forwards: readonly Forward[]
  /** The router of the terminator. */
  readonly isLast: boolean
}

/** What each router of a path forwards, in both directions. */
export function routePlan({
  routerIds,
  linkIds,
  ingressAddress,
  egressAddress,
}: CircuitPath): readonly RouterRoute[] {
  if (linkIds.length !== routerIds.length - 1)
    throw new Error(`a path over ${routerIds.length} routers and ${linkIds.length} links`)
  const stops = [
    { address: ingressAddress, type: 'start' as const },
    ...linkIds.map((address) => ({ address, type: 'link' as const })),
  ]
  const end = { address: egressAddress, type: 'end' as const }
  return stops.map((before, i) => {
    const after = stops[i + 1] ?? end
    return {
      routerId: routerIds[i] ?? '',
      forwards: [
        { from: before.address, to: after.address, toType: after.type },
        { from: after.address, to: before.address, toType: before.type },
      ],
      isLast: after === end,
    }
  })
}
