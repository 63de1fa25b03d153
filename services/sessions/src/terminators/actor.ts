import { system } from '@overlay/rpc'
import type { Actor } from '@overlay/store/change-log'

/** For the audit: the identity that hosts, or the router that acts on its own. */
export const actorOf = (id: string): Actor => ({
  caller: { ...system, isAdmin: false, identityId: id },
  requestId: '',
  sourceAddress: '',
})
