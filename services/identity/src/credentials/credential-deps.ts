import type { NoteRefusal, PauseReports } from '@overlay/service'
import type { ChangeLog } from '@overlay/store/change-log'
import type { ExternalTokens } from '../external-tokens/external-tokens.js'
import type { passwordLookUps } from '../store/password-attempts.js'
import type { SessionBatches } from '../store/session-batches.js'
import type { Authorities, Trust } from './authorities.js'
import type { Chains } from './chains.js'
import type { Hashing } from './hashing.js'

/** What checks and writes credentials. */
export interface CredentialDeps {
  readonly changeLog: ChangeLog
  readonly hashing: Hashing
  readonly trust: Trust
  readonly chains: Chains
  readonly lookUpPassword: ReturnType<typeof passwordLookUps>
  readonly sessionBatches: SessionBatches
  readonly authorities: Authorities
  readonly externalTokens: ExternalTokens
  readonly noteRefusal: NoteRefusal
  /** Logs an identity that its auth policy has disabled after wrong passwords. */
  readonly noteLock: NoteRefusal
  readonly pauseReports: PauseReports
}
