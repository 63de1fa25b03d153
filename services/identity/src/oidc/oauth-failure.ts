import type { Position } from '@overlay/rpc'

/** An error that OAuth defines, for the client. `reason` is for the log and the metric only. */
export class OauthFailure extends Error {
  override readonly name = 'OauthFailure'

  constructor(
    readonly error: 'invalid_request' | 'invalid_grant' | 'invalid_scope' | 'unsupported_grant_type',
    /** May be empty. */
    readonly description: string,
    readonly reason: string,
    /** Whom the refused grant is about, and the write that has ended its API session. */
    readonly about: {
      readonly identityId?: string
      readonly apiSessionId?: string
      readonly position?: Position | undefined
    } = {},
  ) {
    super(description)
  }
}

/** The grant is refused. Clients do not learn why. */
export const refusedGrant = (reason: string, about?: OauthFailure['about']): OauthFailure =>
  new OauthFailure('invalid_grant', 'the grant is not valid', reason, about)

/** wire: without a description. */
export const otherClient = (about: OauthFailure['about']): OauthFailure =>
  new OauthFailure('invalid_grant', '', 'other client', about)

export const malformed = (description: string): OauthFailure =>
  new OauthFailure('invalid_request', description, 'malformed')
