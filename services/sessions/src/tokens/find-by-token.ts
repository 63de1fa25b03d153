import type { Database } from '@overlay/store/postgres'
import { isAbout, isSigned, type SessionToken } from '../domain/session-token.js'
import { findSessionsBy, type TokenSession } from '../store/session.js'
import type { SessionTokens } from './session-tokens.js'

/** The stored session that a token names. The stored one counts: a token is valid for longer. */
export interface FoundByToken {
  readonly session: TokenSession
  /** What the token says. Undefined: it is the stored UUID. */
  readonly signed: SessionToken | undefined
}

/**
 * `invalid`: it is a signed token that is not valid. Undefined: there is no such session. `spend`: before a signature is
 * verified.
 */
export type FindByToken = (
  token: string,
  spend?: (units: number) => void,
) => Promise<FoundByToken | 'invalid' | undefined>

export function openFindByToken(db: Database, tokens: Pick<SessionTokens, 'verify'>): FindByToken {
  const [byId, byToken] = [findSessionsBy(db, 'id'), findSessionsBy(db, 'token')]
  return async (token, spend) => {
    if (!isSigned(token)) {
      const session = await byToken(token)
      return session && { session, signed: undefined }
    }
    const signed = await tokens.verify(token, spend)
    if (!signed) return 'invalid'
    const session = await byId(signed.id)
    return session && isAbout(signed, session) ? { session, signed } : undefined
  }
}
