/** A terminator that a circuit can end at. */
export interface DialTarget {
  readonly id: string
  readonly routerId: string
  readonly serviceId: string
  readonly binding: string
  readonly address: string
  readonly instanceId: string
  readonly hostId: string
  /** By key; for the dialer. */
  readonly peerData: ReadonlyMap<number, Buffer>
}

export interface TargetRequest {
  readonly serviceId: string
  readonly instanceId: string
  /** Terminator that the client used before, for the sticky strategy; empty: none. */
  readonly stickinessToken: string
  /** Cost of the path from the router of the dialer; undefined: there is none, or the router is offline. */
  pathCost(routerId: string): number | undefined
  /** Terminators that have failed during this dial. */
  readonly excluded: ReadonlySet<string>
}

/** Throws AccessRefused (invalid terminator) with the text that clients of the original see. */
export interface TerminatorPool {
  select(request: TargetRequest): Promise<{ readonly target: DialTarget; readonly stickinessToken: string }>
  /** For dynamic costs. */
  dialSucceeded(target: DialTarget): void
  dialFailed(target: DialTarget): void
  circuitOpened(terminatorId: string): void
  /** Only if this replica has opened it. Ends by other replicas are noticed within a minute. */
  circuitClosed(terminatorId: string): void
  /** The router does not know the terminator. */
  deleteUnknown(target: DialTarget): Promise<void>
  /** The terminator cannot be used as it is configured. */
  markFailed(target: DialTarget): Promise<void>
}
