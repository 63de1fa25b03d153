import { LinkListeners } from '@overlay/channel'

type Listeners = ReturnType<typeof LinkListeners.decode>['listeners']

/** The listeners in the hello of a router. Undefined: they are malformed. */
export function linkListenersIn(header: Uint8Array | undefined): Listeners | undefined {
  try {
    return header ? LinkListeners.decode(header).listeners : []
  } catch {
    return undefined
  }
}
