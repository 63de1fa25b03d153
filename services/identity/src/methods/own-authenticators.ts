import type { ChangeLog } from '@overlay/platform/change-log'
import {
  type Context,
  type EntityServiceService,
  Fault,
  type IdentityServiceService,
  type Methods,
  notFound,
} from '@overlay/rpc'
import type { Hashing } from '../credentials/hashing.js'
import { bodyIn } from '../kinds/write-authenticator.js'
import { tryPassword } from '../login/password-attempt.js'
import { type Subject, subjectById } from '../store/subjects.js'

type Own = Pick<
  Methods<IdentityServiceService>,
  'listOwnAuthenticators' | 'getOwnAuthenticator' | 'updateOwnAuthenticator'
>
type Entities = Pick<Methods<EntityServiceService>, 'list' | 'get' | 'update'>

const kind = 'authenticators'

/** The caller's own, whatever else it may see. */
export function ownAuthenticators(changeLog: ChangeLog, hashing: Hashing, entities: Entities): Own {
  const ownSubject = async (id: string, { caller }: Context): Promise<Subject> => {
    const subject = await subjectById(changeLog.db, id)
    if (subject?.identityId !== caller.identityId) throw notFound('authenticator', id)
    return subject
  }
  return {
    async listOwnAuthenticators(request, context) {
      const within = { ids: [], roles: [], symbol: 'identity', value: context.caller.identityId }
      const page = await entities.list({ ...request, kind, within }, context)
      const rows = JSON.parse(Buffer.from(page.rows).toString()) as Shown[]
      return { ...page, rows: Buffer.from(JSON.stringify(rows.map(asOwn))) }
    },

    async getOwnAuthenticator({ id }, context) {
      await ownSubject(id, context)
      const { json } = await entities.get({ ref: { kind, id }, perspective: undefined }, context)
      return { json: Buffer.from(JSON.stringify(asOwn(JSON.parse(Buffer.from(json).toString()) as Shown))) }
    },

    async updateOwnAuthenticator({ ref, json, mask }, context) {
      const id = ref?.id ?? ''
      const subject = await ownSubject(id, context)
      if (subject.method !== 'updb') throw new Fault('CAN_NOT_UPDATE_AUTHENTICATOR')
      const { currentPassword } = bodyIn(json) as { currentPassword?: string }
      const refusal = await tryPassword(
        { changeLog, hashing, context },
        subject.username ?? '',
        currentPassword ?? '',
        async () => subject,
        async (_subject, isRight) => (isRight ? undefined : 'wrong password'),
      )
      if (refusal) {
        // differs: what was sent does not come back
        const cause = { field: 'currentPassword', reason: 'invalid current password', value: '' }
        throw new Fault('UNAUTHORIZED', cause)
      }
      return entities.update({ ref: { kind, id }, json, mask }, context)
    },
  }
}

interface Shown {
  readonly id: string
}

const asOwn = (shown: Shown): object => ({
  ...shown,
  _links: { self: { href: `./current-identity/authenticators/${shown.id}` } },
})
