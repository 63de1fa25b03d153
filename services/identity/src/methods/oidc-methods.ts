import { randomBytes, randomUUID } from 'node:crypto'
import {
  type Context,
  Fault,
  type Methods,
  type OidcServiceService,
  sourceOf,
  type TokenRequest,
} from '@overlay/rpc'
import { afterBadToken } from '@overlay/service'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { isComplete, missingOf } from '../domain/oidc-login.js'
import { newSecondFactor } from '../domain/second-factor.js'
import { guessOf, refuseLogin } from '../login/refusals.js'
import { enrolledFactor, unverifiedFactor, verifiedFactor } from '../mfa/codes.js'
import { asIdentity, endSessionOf } from '../oidc/end-session.js'
import { findLogin, isIdentified, loginState, useLoginCode } from '../oidc/login-steps.js'
import type { OidcDeps } from '../oidc/oidc-deps.js'
import { redeemCode } from '../oidc/redeem-code.js'
import { exchange, refresh } from '../oidc/renew.js'
import { OauthFailure } from '../oidc/token-answers.js'
import { isBearerSession } from '../store/oidc-grants.js'
import { finishLogin as finish, insertLogin } from '../store/oidc-logins.js'
import { insertSecondFactor, lockSecondFactor, removeSecondFactor } from '../store/second-factors.js'
import { presentCredential } from './present-credential.js'
import { passWithCode, secondFactorMethods } from './second-factor-methods.js'

/** Logins by OpenID Connect: the steps of a login, and its tokens. */
export function oidcMethods(deps: OidcDeps) {
  const { changeLog } = deps
  return {
    async startLogin(request, { sourceAddress }) {
      const id = randomUUID()
      await insertLogin(changeLog.db, { ...request, id, source: sourceOf(sourceAddress) })
      return {
        id,
        clientId: request.clientId,
        redirectUri: request.redirectUri,
        state: request.state,
        isIdentified: false,
        isComplete: false,
        needsCode: false,
        needsEnrollment: false,
        needsToken: false,
        authQueries: Buffer.from('[]'),
      }
    },

    getLogin: async (ref) => loginState(await findLogin(deps, ref)),

    /** differs: a factor that is not verified is not asked for, and its codes are refused. */
    presentCode: async (request, context) =>
      useLoginCode(deps, request, context, {
        accepted: 'any',
        accepts: (login) => missingOf(login).needsCode && login.hasVerifiedFactor,
        requires: verifiedFactor,
        isVerified: true,
      }),

    /**
     * Creates the second factor that the auth policy demands. An unverified one is replaced, because others may have seen its
     * secret.
     */
    async enrollSecondFactor(ref, context) {
      const login = await findLogin(deps, ref)
      if (!isIdentified(login)) throw new Fault('NOT_FOUND')
      if (login.hasVerifiedFactor) throw new Fault('MFA_EXISTS')
      if (!missingOf(login).needsEnrollment) throw new Fault('NOT_FOUND')
      const { identityId } = login
      const by = asIdentity(context, login)
      await writeChanges(deps.changeLog, by, async (tx) => {
        if ((await lockSecondFactor(tx, identityId))?.isVerified) throw new Fault('MFA_EXISTS')
        const removed = await removeSecondFactor(tx, identityId)
        const sealed = deps.secondFactors.seal(identityId, newSecondFactor())
        const inserted = await insertSecondFactor(tx, { id: newId('short'), identityId, sealed })
        if (!inserted) throw new Fault('MFA_EXISTS')
        return [...removed, inserted]
      })
      return secondFactorMethods(deps).getMfa({}, by)
    },

    /** differs: works, and completes the login. */
    verifySecondFactor: async (request, context) =>
      useLoginCode(deps, request, context, {
        accepted: 'app',
        accepts: (login) => missingOf(login).needsEnrollment,
        requires: unverifiedFactor,
        isVerified: false,
      }),

    async finishLogin(ref) {
      const login = await findLogin(deps, ref)
      if (!isComplete(login)) return { login: loginState(login), code: '' }
      const code = randomBytes(32).toString('base64url')
      if (!(await finish(deps.changeLog.db, login, code))) throw new Fault('NOT_FOUND')
      return { login: loginState(login), code }
    },

    async getTokens(request, context) {
      const [method, grant] = grants.get(request.grantType) ?? []
      try {
        if (!grant) throw unsupported(request.grantType)
        const answer = await grant(deps, request, context)
        return { json: Buffer.from(JSON.stringify(answer)), error: undefined, position: undefined }
      } catch (err) {
        if (!(err instanceof OauthFailure)) throw err
        const { error, description, reason, about } = err
        refuseLogin(deps.noteRefusal, context, {
          method: method ?? 'grant',
          reason,
          identityId: about.identityId,
          apiSessionId: about.apiSessionId,
        })
        if (error === 'invalid_grant') await countBadGrant(deps, context)
        return { json: Buffer.alloc(0), error: { error, description }, position: about.position }
      }
    },

    async revokeToken({ clientId, token }, context) {
      const claims = await deps.tokens.read(token)
      if (!claims || claims.type === 'id' || claims.isExpired || claims.clientId !== clientId)
        return { position: undefined }
      return { position: await endSessionOf(deps, claims, context) }
    },

    /** differs: a repeated logout succeeds. */
    async endSession({ idTokenHint, clientId }, context) {
      const claims = await deps.tokens.read(idTokenHint)
      if (claims?.type !== 'id') return refused('id_token_hint is not an id token of this provider')
      if (clientId !== '' && clientId !== claims.clientId)
        return refused('client_id is not that of the id token')
      const position = await endSessionOf(deps, claims, context)
      return { clientId: claims.clientId, error: undefined, position }
    },

    /** wire: only codes of the app. The token is signed after the code is used: signing costs more than the check. */
    async createTotpToken({ code }, context) {
      const { caller } = context
      if (!(await isBearerSession(changeLog.db, caller.apiSessionId)))
        throw new Fault('INVALID_BACKING_TOKEN_TYPE')
      const use = { code, accepted: 'app', requires: enrolledFactor } as const
      const { position, policy } = await passWithCode(deps, use, context)
      return { ...(await deps.tokens.issueTotp(caller, context)), position, policy }
    },

    presentCredential: presentCredential(deps),
  } satisfies Methods<OidcServiceService>
}

type Grant = (deps: OidcDeps, request: TokenRequest, context: Context) => Promise<object>

/** By grant type: the name of the grant in metrics, and its work. */
const grants = new Map<string, readonly [method: string, grant: Grant]>([
  ['authorization_code', ['code', redeemCode]],
  ['refresh_token', ['refresh', refresh]],
  ['urn:ietf:params:oauth:grant-type:token-exchange', ['exchange', exchange]],
])

/** Counts it like a bad external token. @throws Fault SERVER_TOO_MANY_REQUESTS from the limit on */
async function countBadGrant(deps: OidcDeps, context: Context): Promise<void> {
  const refusal = new Fault('INVALID_AUTH')
  const fault = await afterBadToken(deps, context, guessOf('token', context), refusal)
  if (fault !== refusal) throw fault
}

const unsupported = (grantType: string): OauthFailure =>
  grantType === ''
    ? new OauthFailure('invalid_request', 'grant_type is required', 'malformed')
    : new OauthFailure('unsupported_grant_type', 'the grant type is not supported', 'malformed')

const refused = (description: string) => ({
  clientId: '',
  error: { error: 'invalid_request', description },
  position: undefined,
})
