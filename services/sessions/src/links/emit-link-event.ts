import type { FabricEvents } from '@overlay/store/change-log'
import type { Link } from '../domain/link.js'

type LinkEventType =
  | 'fault'
  | 'duplicate'
  | 'routerLinkNew'
  | 'routerLinkKnown'
  | 'routerLinkDisconnectedDest'

/** wire: an event about an unknown link has all members; those but the id are empty. */
export function emitLinkEvent(
  events: FabricEvents,
  type: LinkEventType,
  link: Pick<Link, 'id'> & Partial<Link>,
): void {
  events.emit({
    namespace: 'fabric.links',
    event_type: type,
    link_id: link.id,
    src_router_id: link.sourceId ?? '',
    dst_router_id: link.destinationId ?? '',
    protocol: link.protocol ?? '',
    dial_address: link.dialAddress ?? '',
    cost: link.staticCost ?? 0,
  })
}
