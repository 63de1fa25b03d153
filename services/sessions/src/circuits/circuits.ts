/** What other concerns ask of circuits. Each ends or moves the circuits of all replicas. */
export interface Circuits {
  /** Ends the circuits of these sessions, and tells their routers. */
  endOfSessions(sessionIds: readonly string[]): Promise<void>
  /** Ends the circuits to these terminators. */
  endOfTerminators(terminatorIds: readonly string[]): Promise<void>
  /** Moves the circuits over a link that is gone or out of service to other paths, or ends them. */
  leaveLink(linkId: string): Promise<void>
  /** The router has been offline for long enough: ends circuits that begin or end there, moves the others. */
  leaveRouter(routerId: string): Promise<void>
}
