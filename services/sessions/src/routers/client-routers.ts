import { routersForClients } from '@overlay/model'
import type { Position } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'
import { clientRouter } from '../domain/client-router.js'
import type { NetworkRouter, RouterDirectory } from './router-directory.js'
import type { Presence, RouterPresence } from './router-presence.js'

/** Edge routers as clients see them, as JSON from memory. */
export interface RouterTexts {
  /** The list of those that exist. Undefined: memory may be older than this position of our change log. */
  of(ids: readonly string[], written: Position | undefined): string | undefined
}

interface Text {
  readonly router: NetworkRouter
  readonly presence: Presence | undefined
  readonly isOnline: boolean
  readonly json: string
}

export function routerTexts(
  directory: Pick<RouterDirectory, 'get' | 'onChange' | 'position' | 'isFresh'>,
  presence: Pick<RouterPresence, 'of'>,
): RouterTexts & Disposable {
  const texts = new Map<string, Text>() // current while router and presence are the same objects
  const listening = directory.onChange((id, router) => {
    if (!router) texts.delete(id)
  })

  function textOf(id: string): Text | undefined {
    const router = directory.get(id)
    if (!router?.isEdge) return undefined
    const best = bestOf(presence.of(id))
    const before = texts.get(id)
    if (before?.router === router && before.presence === best) return before
    const text = render(router, best)
    texts.set(id, text)
    return text
  }
  return {
    of(ids, written) {
      if (!directory.isFresh() || !isAtLeast(directory.position(), written)) return undefined
      const shown = routersForClients(ids.flatMap((id) => textOf(id) ?? []))
      return shown ? `[${shown.map(({ json }) => json).join(',')}]` : 'null'
    },
    [Symbol.dispose]: () => listening[Symbol.dispose](),
  }
}

/** The connection to the replica that has told the router most; `connections`: the newest first. */
const bestOf = (connections: readonly Presence[]): Presence | undefined =>
  connections.find(({ syncStatus }) => syncStatus === 'SYNC_DONE') ?? connections[0]

function render(router: NetworkRouter, presence: Presence | undefined): Text {
  const { id, name, cost, noTraversal, disabled } = router
  const isOnline = presence !== undefined
  const { hostname = null, supportedProtocols = null, syncStatus = null } = presence ?? {}
  const row = { id, name, cost, noTraversal, disabled, isOnline, hostname, supportedProtocols, syncStatus }
  return { router, presence, isOnline, json: JSON.stringify(clientRouter(row)) }
}
