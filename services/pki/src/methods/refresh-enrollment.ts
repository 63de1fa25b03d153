import { invalid, notFound } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { renewEnrollment } from '../store/enrollments.js'
import type { Deps, PkiMethods } from './deps.js'

/** differs: issues another token, as the documents say. The previous one is void. */
export const refreshEnrollment =
  ({ changeLog, issuer, now }: Deps): PkiMethods['refreshEnrollment'] =>
  async ({ id, expiresAtMs }, context) => {
    const expiresAt = new Date(expiresAtMs)
    if (expiresAt <= now()) throw invalid('expiresAt', 'expiresAt must be in the future', expiresAt)
    const position = await writeChanges(changeLog, context, async (tx) => {
      const changes = await renewEnrollment(tx, id, (enrollment) => {
        // differs: not a crash
        if (!enrollment.identityId) throw invalid('id', 'a router is enrolled anew instead', id)
        return issuer.renew(enrollment, expiresAt)
      })
      if (changes.length === 0) throw notFound('enrollment', id)
      return changes
    })
    return { id, position }
  }
