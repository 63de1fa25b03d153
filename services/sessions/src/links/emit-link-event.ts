import type { FabricEvents } from '@overlay/store/change-log'
import type { Link } from '../domain/link.js'
import type { ShownConnection } from '../store/link.js'

type LinkEventType =
  | 'fault'
  | 'duplicate'
  | 'routerLinkNew'
  | 'routerLinkKnown'
  | 'routerLinkDisconnectedDest'
  | 'connectionsChanged'

/** wire: an event about an unknown link has all members; those but the id are empty. */
export function emitLinkEvent(
  events: FabricEvents,
  type: LinkEventType,
  link: Pick<Link, 'id'> & Partial<Link>,
  connections: readonly ShownConnection[] = [],
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
    ...(connections.length > 0 && {
      connections: connections.map(({ type, source, dest }) => ({
        ...{ id: type, local_addr: source, remote_addr: dest },
      })),
    }),
  })
}
