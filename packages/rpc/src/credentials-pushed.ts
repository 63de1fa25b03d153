import type { Position } from './gen/overlay/change/v1/change.js'

/**
 * Kind of identity: by which routers recognize the connections of API sessions. The content is secret, so no change row
 * has it.
 */
export const CREDENTIALS = 'api-session-credentials'

/** Subject of the bus on which replicas of sessions that have routers report, each second and after each push. */
export const CREDENTIALS_PUSHED = 'overlay.sessions.credentials-pushed'

export interface CredentialsPushed {
  /** A name of the process. */
  readonly replica: string
  /** Its routers have been sent the changes of API sessions up to this position of schema identity. */
  readonly position: Position
  /** How many routers are connected to it. 0: logins no longer wait for it. */
  readonly routers: number
}
