import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { type OwnAuthenticator, ownSubject, withOwnLinks } from '../credentials/own-authenticators.js'
import type { Deps } from './deps.js'

export const getOwnAuthenticator =
  ({ changeLog, entities }: Deps): Methods<IdentityServiceService>['getOwnAuthenticator'] =>
  async ({ id }, context) => {
    await ownSubject(changeLog.db, id, context)
    const ref = { kind: 'authenticators', id }
    const { json } = await entities.get({ ref, perspective: undefined }, context)
    const shown = JSON.parse(Buffer.from(json).toString()) as OwnAuthenticator
    return { json: Buffer.from(JSON.stringify(withOwnLinks(shown))) }
  }
