import type { IdentityServiceService, Methods } from '@overlay/rpc'
import { type OwnAuthenticator, withOwnLinks } from '../credentials/own-authenticators.js'
import type { Deps } from './deps.js'

/** The authenticators of the caller, also of an admin. */
export const listOwnAuthenticators =
  ({ entities }: Deps): Methods<IdentityServiceService>['listOwnAuthenticators'] =>
  async (request, context) => {
    const within = { ids: [], roles: [], symbol: 'identity', value: context.caller.identityId }
    const page = await entities.list({ ...request, kind: 'authenticators', within }, context)
    const rows = JSON.parse(Buffer.from(page.rows).toString()) as OwnAuthenticator[]
    return { ...page, rows: Buffer.from(JSON.stringify(rows.map(withOwnLinks))) }
  }
