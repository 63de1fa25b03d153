import { LinkPresence, type ValidatedLink, ValidatedLinks } from '@overlay/channel'
import type { LinkTable } from '../links/link-table.js'
import {
  type InspectDeps,
  inspectRouter,
  objectsIn,
  orRefused,
  type RouterCheck,
  textIn,
} from './inspect-router.js'

export interface RouterLinkDeps extends InspectDeps {
  readonly topology: { readonly table: Pick<LinkTable, 'get' | 'of'> }
}

const { UNKNOWN, ESTABLISHED, PENDING } = LinkPresence

/** A link that one side has and the other has not is valid while the router at its other end is offline. */
export const validateLinks =
  ({ topology: { table }, presence }: RouterLinkDeps): RouterCheck =>
  async (deps, { id: routerId, name: routerName }) => {
    const result = (success: boolean, message: string, details: ValidatedLink[]) =>
      ValidatedLinks.encode({ routerId, routerName, success, message, details }).finish()
    return orRefused(
      async () => {
        const found = objectsIn((await inspectRouter(deps, routerId, ['links'])).get('links'), 'links')
        const details = found.map((link): ValidatedLink => {
          const [linkId, destinationRouterId] = [textIn(link, 'id'), textIn(link, 'dest')]
          const stored = table.get(linkId)
          const destinationConnected = presence.isOnline(destinationRouterId)
          return {
            ...{ linkId, destinationRouterId, destinationConnected, messages: [] },
            controllerState: !stored ? UNKNOWN : stored.isConfirmed === false ? PENDING : ESTABLISHED,
            routerState: ESTABLISHED,
            isValid: destinationConnected === (stored !== undefined),
            dialed: link.dialed === true,
          }
        })
        const known = new Set(details.map(({ linkId }) => linkId))
        for (const { id: linkId, sourceId, destinationId } of table.of(routerId)) {
          if (known.has(linkId)) continue
          const destinationRouterId = sourceId === routerId ? destinationId : sourceId
          details.push({
            ...{ linkId, destinationRouterId, messages: [], isValid: false },
            destinationConnected: presence.isOnline(destinationRouterId),
            ...{ controllerState: ESTABLISHED, routerState: UNKNOWN, dialed: sourceId === routerId },
          })
        }
        return result(true, '', details)
      },
      (message) => result(false, message, []),
    )
  }
