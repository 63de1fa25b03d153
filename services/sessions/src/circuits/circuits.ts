/** A circuit for one of the clients of a router, whose access is verified. */
export interface CircuitRequest {
  /** The router of the client. */
  readonly routerId: string
  /** The session; the circuit ends with it. */
  readonly sessionId: string
  /** The client. */
  readonly identityId: string
  readonly serviceId: string
  /** Empty: the service has terminators without an instance. */
  readonly instanceId: string
  /** By key; for the host. */
  readonly peerData: ReadonlyMap<number, Buffer>
}

export interface OpenedCircuit {
  readonly id: string
  /** Where the router of the client sends its payload. */
  readonly address: string
  /** By key; for the client. */
  readonly peerData: ReadonlyMap<number, Buffer>
  readonly tags: Readonly<Record<string, string>>
}

/** What other concerns ask of circuits. Each ends or moves the circuits of all replicas. */
export interface Circuits {
  /** Selects a terminator and sets up a circuit to it. Throws AccessRefused. */
  open(request: CircuitRequest): Promise<OpenedCircuit>
  /** Ends a circuit for an administrator. False: there is no such circuit. */
  end(id: string): Promise<boolean>
  /** Ends the circuits of these sessions, and notifies their routers. */
  endOfSessions(sessionIds: readonly string[]): Promise<void>
  /** Ends the circuits to these terminators. */
  endOfTerminators(terminatorIds: readonly string[]): Promise<void>
  /**
   * Moves the circuits over a link that is deleted or out of service to other paths, or ends them. Those that begin or end
   * at a router that is offline stay; `hasFailed`: for a short time only, because the link carries nothing.
   */
  leaveLink(linkId: string, hasFailed?: boolean): Promise<void>
  /** The router has been offline for long enough: ends circuits that begin or end there, moves the others. */
  leaveRouter(routerId: string): Promise<void>
}
