import { Fault, type IdentityServiceService, type Methods } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { newId } from '@overlay/store/kind-store'
import { newSecondFactor } from '../domain/second-factor.js'
import { insertSecondFactor } from '../store/second-factors.js'
import type { Deps } from './deps.js'

/** Creates the second factor of the caller. It takes effect with its first code. */
export const startMfa =
  ({ changeLog, secondFactors }: Deps): Methods<IdentityServiceService>['startMfa'] =>
  async (_request, context) => {
    const { identityId } = context.caller
    const id = newId('short')
    const position = await writeChanges(changeLog, context, async (tx) => {
      const sealed = secondFactors.seal(identityId, newSecondFactor())
      const inserted = await insertSecondFactor(tx, { id, identityId, sealed })
      if (!inserted) throw new Fault('MFA_EXISTS')
      return [inserted]
    })
    return { id, position }
  }
