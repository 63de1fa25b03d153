import { required } from '@overlay/store/kind-store'
import { eagerInserter } from '../store/enrollments.js'
import type { Deps, PkiMethods } from './deps.js'

/** Creates a requested enrollment before the change that carries its wish is consumed, or waits until it is. */
export function grantEnrollment(deps: Deps): PkiMethods['grantEnrollment'] {
  const { changeLog, issuer, consumers, eagerSteps } = deps
  const insert = eagerInserter(changeLog)
  return async (request, context) => {
    const wish = required(request.wish)
    const position = required(request.position)
    const isGranted = await eagerSteps.granted.run(wish.id, async () =>
      insert(issuer.issue(wish), position, context),
    )
    if (!isGranted) await consumers.identity.waitFor(position, context.signal)
    return {}
  }
}
