import type { Context, TokenRequest } from '@overlay/rpc'
import type { RowChange } from '@overlay/store/change-log'
import type { Tx } from '@overlay/store/postgres'
import type { TokenFacts } from '../domain/oidc-claims.js'
import { REUSE_SECONDS } from '../limits.js'
import {
  endBearerSession,
  extendSession,
  grantedSession,
  insertRefreshToken,
  lockSession,
  type Use,
  type Used,
  useRefreshToken,
} from '../store/oidc-grants.js'
import { keepAccessToken } from '../store/session-credentials.js'
import { asIdentity } from './end-session.js'
import type { OidcDeps } from './oidc-deps.js'
import {
  malformed,
  OPENID,
  otherClient,
  refusedGrant,
  scopesWithin,
  secondsUntil,
  tokenAnswer,
} from './token-answers.js'
import type { BearerClaims, IssuedTokens, TokenSelection } from './tokens.js'

/** Replaces a refresh token, and issues tokens of the same API session. Of parallel uses of one token, one succeeds. */
export async function refresh(deps: OidcDeps, request: TokenRequest, context: Context): Promise<object> {
  if (request.refreshToken === '') throw malformed('refresh_token is required')
  const subject = await subjectOf(deps, request.refreshToken, request.clientId)
  const facts = await liveFacts(deps, subject)
  const scopes = scopesWithin(facts.scopes, request.scopes)
  const selection = { access: true, refresh: true, id: facts.scopes.includes(OPENID), scopes }
  return tokenAnswer(await renew(deps, { subject, facts, selection, use: 'replace' }, context))
}

const urn = 'urn:ietf:params:oauth:token-type:'

/**
 * Exchanges a refresh token for tokens of the same API session (RFC 8693). SDKs renew their tokens by two exchanges of
 * one refresh token, so an exchange does not consume it.
 * differs: access tokens are not exchanged. Routers and services see them, and could prolong what they have seen.
 */
export async function exchange(deps: OidcDeps, request: TokenRequest, context: Context): Promise<object> {
  const { subjectToken, subjectTokenType, clientId } = request
  const requested = request.requestedTokenType || `${urn}refresh_token`
  if (subjectToken === '') throw malformed('subject_token is required')
  if (subjectTokenType !== `${urn}refresh_token`) throw malformed('subject_token_type is not supported')
  if (!requestedTypes.has(requested)) throw malformed('requested_token_type is not supported')
  const subject = await subjectOf(deps, subjectToken, clientId)
  const facts = await liveFacts(deps, subject)
  const scopes = scopesWithin(facts.scopes, request.scopes)
  const isId = requested === `${urn}id_token`
  const isRefresh = requested === `${urn}refresh_token`
  const selection = { access: !isId, refresh: isRefresh, id: isId, scopes }
  const issued = await renew(deps, { subject, facts, selection, use: 'keep' }, context)
  // wire: an exchange for an id token answers it as `access_token`, with `token_type: N_A`
  if (isId) return { access_token: issued.id, issued_token_type: requested, token_type: 'N_A' }
  return {
    access_token: issued.access,
    issued_token_type: isRefresh ? requested : `${urn}access_token`,
    token_type: 'Bearer',
    expires_in: secondsUntil(issued.accessExpiresAt),
    ...(isRefresh && { refresh_token: issued.refresh }),
  }
}

const requestedTypes = new Set(['refresh_token', 'access_token', 'id_token'].map((type) => urn + type))

/** The claims of a refresh token that the client presents as its own. */
async function subjectOf({ tokens }: OidcDeps, token: string, clientId: string): Promise<BearerClaims> {
  const claims = await tokens.read(token)
  if (claims?.type !== 'refresh') throw refusedGrant('no token')
  if (claims.isExpired) throw refusedGrant('expired', claims)
  if (claims.clientId !== clientId) throw otherClient(claims)
  return claims
}

/** What the next tokens say: of the API session and its identity as they are now. */
async function liveFacts(
  { changeLog, lifetimes, issuer }: OidcDeps,
  subject: BearerClaims,
): Promise<TokenFacts> {
  const session = await grantedSession(changeLog.db, subject, lifetimes.lifetimeSeconds)
  if (!session) throw refusedGrant('ended', subject)
  return { ...session, issuer }
}

interface Renewal {
  readonly subject: BearerClaims
  readonly facts: TokenFacts
  readonly selection: TokenSelection
  readonly use: Use
}

/** Signs the tokens first, so that the presented one survives a failure of pki. */
async function renew(
  deps: OidcDeps,
  { subject, facts, selection, use }: Renewal,
  context: Context,
): Promise<IssuedTokens> {
  const issued = await deps.tokens.issue(facts, selection, context)
  const { apiSessionId } = subject
  const by = asIdentity(context, facts)
  const { result, position } = await deps.changeLog.write<Used>(by, async (tx) => {
    if (!(await lockSession(tx, apiSessionId))) return unchanged('refused')
    const used = await useRefreshToken(tx, { id: subject.jti, apiSessionId }, use, REUSE_SECONDS)
    if (used === 'reused') return { result: used, changes: await endBearerSession(tx, subject) }
    if (used === 'refused') return unchanged(used)
    await keepTokens(tx, apiSessionId, issued)
    if (selection.access)
      await extendSession(
        tx,
        apiSessionId,
        selection.refresh ? issued.refreshExpiresAt : issued.accessExpiresAt,
      )
    return unchanged(used)
  })
  if (result === 'used' && selection.access) await deps.credentialFeed.deliver()
  const { identityId } = subject
  if (result === 'reused') throw refusedGrant('reused', { identityId, apiSessionId, position })
  if (result !== 'used') throw refusedGrant('used or unknown', { identityId, apiSessionId })
  return issued
}

const unchanged = (result: Used): { readonly result: Used; readonly changes: readonly RowChange[] } => ({
  result,
  changes: [],
})

/** Stores tokens that are about to be handed out. Callers have locked the API session. */
export async function keepTokens(tx: Tx, apiSessionId: string, issued: IssuedTokens): Promise<void> {
  const { access, refresh, jti } = issued
  if (access !== undefined) {
    const expiresAt = new Date(issued.accessExpiresAt * 1000)
    await keepAccessToken(tx, { apiSessionId, token: access, expiresAt })
  }
  if (refresh !== undefined)
    await insertRefreshToken(tx, { id: jti, apiSessionId, expiresAtSeconds: issued.refreshExpiresAt })
}
