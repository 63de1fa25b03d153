import { X509Certificate } from 'node:crypto'
import type { Context, TokenRequest } from '@overlay/rpc'
import { newTimeUuid } from '@overlay/store/kind-store'
import type { Db } from '@overlay/store/postgres'
import { endsSoon, type TokenFacts } from '../domain/oidc-claims.js'
import { isComplete, verifies } from '../domain/oidc-login.js'
import { apiSessionEvent } from '../login/session-message.js'
import { openSession } from '../store/api-sessions.js'
import { configTypesNamed } from '../store/config-types.js'
import { boundTo, redeemedCode } from '../store/oidc-grants.js'
import { type CodedLogin, codeDigestOf, loginByCode } from '../store/oidc-logins.js'
import { completeSession } from '../store/second-factors.js'
import type { FirstTokens } from '../store/session-credentials.js'
import { asIdentity, endSessionOf } from './end-session.js'
import type { OidcDeps } from './oidc-deps.js'
import { malformed, OFFLINE, OPENID, otherClient, refusedGrant, tokenAnswer } from './token-answers.js'
import type { IssuedTokens } from './tokens.js'

/**
 * Opens the API session of a login for its code. A request that does not match leaves the code; of several that do, one
 * succeeds. Tokens are signed before the code is used, so that a code survives a failure of pki.
 */
export async function redeemCode(deps: OidcDeps, request: TokenRequest, context: Context): Promise<object> {
  const login = await matchingLogin(deps, request, context)
  const facts = await factsOf(deps, login, context)
  const isOffline = login.scopes.includes(OFFLINE)
  const selection = {
    access: true,
    refresh: isOffline,
    id: login.scopes.includes(OPENID),
    scopes: login.scopes,
  }
  const issued = await deps.tokens.issue(facts, { ...selection, code: request.code }, context)
  const expiresAt = isOffline ? issued.refreshExpiresAt : issued.accessExpiresAt
  const open = (db: Db) =>
    openSession(db, {
      ...login.firstFactor,
      configTypes: facts.configTypes,
      certificate: certificateOf(login),
      // a token of the login counts as long as its session
      second:
        login.secondSignerId === null ? undefined : { signerId: login.secondSignerId, untilMs: undefined },
      bearer: {
        id: facts.apiSessionId,
        clientId: login.clientId,
        expiresAtSeconds: expiresAt,
        codeDigest: codeDigestOf(request.code),
        isMfaComplete: login.isMfaComplete,
        tokens: firstTokens(facts, issued),
      },
    })
  const { result: session, position } = login.isMfaComplete
    ? await deps.changeLog.write(asIdentity(context, login), async (tx) => {
        const opened = await open(tx)
        return { result: opened, changes: opened ? await completeSession(tx, opened.id) : [] }
      })
    : { result: await open(deps.changeLog.db), position: undefined } // followers learn nothing of it
  if (!session) {
    await refuseUsedCode(deps, request, context)
    throw refusedGrant('changed meanwhile', { identityId: login.identityId })
  }
  deps.events?.emit(apiSessionEvent('created', session))
  await deps.credentialFeed.deliver()
  if (position) await deps.waitForFollowers({ id: session.id, position }, context, ['policy']) // for posture checks
  return tokenAnswer(issued, login.state)
}

function firstTokens(
  grant: TokenFacts,
  { access, refresh, jti, accessExpiresAt, refreshExpiresAt }: IssuedTokens,
): FirstTokens {
  if (access === undefined) throw new Error('no access token was issued')
  return {
    grant,
    accessToken: access,
    accessExpiresAtSeconds: accessExpiresAt,
    refresh: refresh === undefined ? undefined : { id: jti, expiresAtSeconds: refreshExpiresAt },
  }
}

/**
 * A code that is presented again may have been stolen together with its verifier: the API session that it has opened ends
 * (RFC 6749, 4.1.2). The code without its verifier ends nothing.
 */
async function refuseUsedCode(deps: OidcDeps, request: TokenRequest, context: Context): Promise<void> {
  const used = await redeemedCode(deps.changeLog.db, codeDigestOf(request.code))
  if (!used || used.clientId !== request.clientId || !verifies(request.codeVerifier, used.codeChallenge))
    return
  const { apiSessionId, identityId } = used
  throw refusedGrant('used code', {
    apiSessionId,
    identityId,
    position: await endSessionOf(deps, used, context),
  })
}

async function matchingLogin(deps: OidcDeps, request: TokenRequest, context: Context): Promise<CodedLogin> {
  const { code, codeVerifier, clientId, redirectUri } = request
  if (code === '') throw malformed('code is required')
  if (codeVerifier === '') throw malformed('code_verifier is required')
  const login = await loginByCode(deps.changeLog.db, code)
  if (!login) {
    await refuseUsedCode(deps, request, context)
    throw refusedGrant('unknown code')
  }
  const about = { identityId: login.identityId }
  if (login.clientId !== clientId) throw otherClient(about)
  if (login.redirectUri !== redirectUri) throw refusedGrant('other redirect', about)
  if (!verifies(codeVerifier, login.codeChallenge)) throw refusedGrant('wrong verifier', about)
  // the auth policy or the identity may have changed since
  if (!isComplete(login)) throw refusedGrant('not complete', about)
  return login
}

async function factsOf(deps: OidcDeps, login: CodedLogin, context: Context): Promise<TokenFacts> {
  const { firstFactor } = login
  // those of both requests add up
  const words = [...new Set([...login.configTypes, ...firstFactor.configTypes])]
  await deps.waitForConfigTypes(words, context)
  return {
    issuer: deps.issuer,
    clientId: login.clientId,
    apiSessionId: newTimeUuid(),
    identityId: login.identityId,
    identityName: login.identityName ?? '',
    isAdmin: login.isAdmin,
    externalId: login.externalId,
    scopes: login.scopes,
    nonce: login.nonce,
    method: firstFactor.method,
    isMfaComplete: login.isMfaComplete,
    hasSecondToken: login.secondSignerId !== null,
    authTimeSeconds: Math.floor(firstFactor.atMs / 1000),
    configTypes: await configTypesNamed(deps.changeLog.db, words),
    ...boundTo({
      fingerprints: [...firstFactor.fingerprints, ...login.fingerprints],
      loginFingerprints: firstFactor.fingerprints,
    }),
    mayCertsExpire: login.mayCertsExpire && endsSoon(firstFactor.certificate, new Date()),
    envInfo: firstFactor.envInfo,
    sdkInfo: firstFactor.sdkInfo,
    remoteAddress: firstFactor.ipAddress,
    isCertExtendable: firstFactor.isCertExtendable,
  }
}

const certificateOf = ({ firstFactor: { certificate } }: CodedLogin): X509Certificate | undefined =>
  certificate === null ? undefined : new X509Certificate(certificate)
