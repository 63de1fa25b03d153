import { type Methods, notFound, type SessionsServiceService } from '@overlay/rpc'
import { linkListenersIn } from '../channel/link-listeners.js'
import { type AddressesIn, claimHosts } from '../store/router-host.js'
import type { Deps } from './method-deps.js'

/** A router with a host of another one could stand in for it. What a router has had it keeps. */
export const claimRouterHosts =
  ({
    changeLog: { db },
    log,
  }: Pick<Deps, 'changeLog' | 'log'>): Methods<SessionsServiceService>['claimRouterHosts'] =>
  async ({ routerId, hosts }) => {
    const refused = await claimHosts(db, routerId, hosts, addressesIn, (unreadable, err) =>
      log.warn({ err, routerId: unreadable }, 'certificate of a router not read: it reserves no hosts'),
    )
    if (!refused) throw notFound('router', routerId)
    return { refused: [...refused] }
  }

const addressesIn: AddressesIn = (listeners) =>
  (linkListenersIn(listeners) ?? []).map(({ address }) => address)
