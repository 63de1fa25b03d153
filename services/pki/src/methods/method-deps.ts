import type { Queue } from '@overlay/process/async'
import type { Context } from '@overlay/rpc'
import type { NoteRefusal, PauseReports } from '@overlay/service'
import type { ChangeLog, Consumer } from '@overlay/store/change-log'
import type { TokenKeyRules } from '../domain/token-key-plan.js'
import type { Owners } from '../enroll/enroll-method.js'
import type { RouterNaming } from '../enroll/router-methods.js'
import type { EnrollmentIssuer } from '../keys/enrollment-issuer.js'
import type { Keyring, TokenKeyring } from '../keys/keyring.js'

/** What the methods of the service work with. */
export interface MethodDeps {
  readonly changeLog: ChangeLog
  readonly issuer: EnrollmentIssuer
  readonly consumers: Readonly<Record<'identity' | 'sessions', Pick<Consumer, 'waitFor'>>>
  readonly owners: Owners
  readonly routerNaming: RouterNaming
  /** Bounds the checks and signatures that run at once, milliseconds of a core each. */
  readonly queue: Queue
  readonly noteRefusal: NoteRefusal
  readonly pauseReports: PauseReports
  keyring(): Promise<Keyring>
  tokenKeyring(): Promise<TokenKeyring>
  /** Waits until the keyrings are as new as what the caller has seen. */
  reachKeys(context: Context): Promise<void>
  readonly tokenKeyRules: TokenKeyRules
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  now(): Date
}
