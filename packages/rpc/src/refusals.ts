import type { PeerName } from './peer-name.js'

/** A connection that was refused, or a call of a peer that may not make it. */
export interface Refusal {
  readonly reason: string
  /** The path of the method. Absent: the connection was refused. */
  readonly method?: string
  readonly caller?: PeerName
  /** Of the certificate of a refused connection. */
  readonly names?: string | undefined
}

export type Refused = (refusal: Refusal) => void
