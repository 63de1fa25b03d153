import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { guessHistory } from '@overlay/store/guesses'
import { bodyIn } from '@overlay/store/kind-store'
import { ownSubject } from '../credentials/own-authenticators.js'
import { tryPassword } from '../login/password-attempt.js'
import { refuseLogin } from '../login/refuse-login.js'
import type { Deps } from './deps.js'

/** Changes name or password of the caller, who must know the current password. */
export const updateOwnAuthenticator =
  (deps: Deps): Methods<IdentityServiceService>['updateOwnAuthenticator'] =>
  async ({ ref, json, mask }, context) => {
    const { changeLog, entities } = deps
    const id = ref?.id ?? ''
    const subject = await ownSubject(changeLog.db, id, context)
    if (subject.method !== 'updb') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
    const { currentPassword } = bodyIn(json) as { currentPassword?: string }
    const refusal = await tryPassword(
      { ...deps, context },
      {
        username: subject.username ?? '',
        password: currentPassword ?? '',
        find: async (guess) => ({ history: await guessHistory(changeLog.db, guess), subject }),
        judge: async (_subject, isCorrect) => (isCorrect ? undefined : 'wrong password'),
      },
    )
    if (refusal) {
      const { identityId, identityName, username } = subject
      refuseLogin(deps.noteRefusal, context, {
        method: 'password',
        reason: refusal,
        username: username ?? undefined,
        identityId,
        identityName,
        apiSessionId: context.caller.apiSessionId,
      })
      // differs: the password is not sent back
      const detail = { field: 'currentPassword', reason: 'invalid current password', value: '' }
      throw new Fault('UNAUTHORIZED', detail)
    }
    return entities.update({ ref: { kind: 'authenticators', id }, json, mask }, context)
  }
