import { edgeRouter, transitRouter } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import {
  type ChangeLog,
  localSource,
  type Memory,
  openProjection,
  type Projection,
} from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import type { Logger } from 'pino'
import { routerLoaders } from '../store/router.js'

/** A router of the network, whether or not it is connected. */
export interface NetworkRouter {
  readonly id: string
  readonly name: string
  readonly isEdge: boolean
  readonly cost: number
  readonly noTraversal: boolean
  readonly disabled: boolean
  readonly isTunnelerEnabled: boolean
  /** SHA-1 of its client certificate, hex. Undefined until it enrolls. */
  readonly fingerprint: string | undefined
  /** Of certificates that this one replaced, which the router may still use. */
  readonly formerFingerprints: readonly string[]
  /** Of a certificate that will replace this one. */
  readonly unverifiedFingerprint: string | undefined
}

export type RouterListener = (id: string, router: NetworkRouter | undefined) => void

/** All routers, in memory. */
export interface RouterDirectory
  extends Pick<Projection, 'position' | 'waitFor' | 'isFresh'>,
    AsyncDisposable {
  get(id: string): NetworkRouter | undefined
  all(): Iterable<NetworkRouter>
  /** Calls are synchronous, one for each change. Undefined: the router is deleted. */
  onChange(listener: RouterListener): Disposable
}

const decodeEdge = payloadDecoder(edgeRouter)
const decodeTransit = payloadDecoder(transitRouter)

function decode(change: Change): NetworkRouter | undefined {
  const isEdge = change.kind === edgeRouter.kind
  const row: ReturnType<typeof decodeEdge> = isEdge ? decodeEdge(change) : decodeTransit(change)
  return (
    row && {
      id: change.id,
      name: row.name ?? '',
      isEdge,
      cost: row.cost ?? 0,
      noTraversal: row.noTraversal ?? false,
      disabled: row.disabled ?? false,
      isTunnelerEnabled: row.isTunnelerEnabled ?? false,
      fingerprint: row.fingerprint ?? undefined,
      formerFingerprints: row.formerFingerprints ?? [],
      unverifiedFingerprint: row.unverifiedFingerprint ?? undefined,
    }
  )
}

/** Loads all routers, then follows the change log of this service. */
export async function openRouterDirectory(changeLog: ChangeLog, log: Logger): Promise<RouterDirectory> {
  const routers = new Map<string, NetworkRouter>()
  const listeners = new Set<RouterListener>()

  function write(id: string, router: NetworkRouter | undefined): void {
    if (router) routers.set(id, router)
    else if (!routers.delete(id)) return
    for (const listener of listeners) listener(id, router)
  }
  const memory: Memory = {
    name: 'routers',
    kinds: [edgeRouter.kind, transitRouter.kind],
    apply(changes) {
      for (const change of changes) write(change.id, decode(change))
    },
    unknown: ({ id }) => write(id, undefined), // a row that cannot be read admits no router
    load() {
      const loaded = new Set<string>()
      return {
        add(rows) {
          for (const row of rows) {
            loaded.add(row.id)
            const router = decode(row)
            // changes were missed: the former certificate may have been revoked
            if (router && routers.has(row.id) && routers.get(row.id)?.fingerprint !== router.fingerprint)
              write(row.id, { ...router, fingerprint: undefined })
            write(row.id, router)
          }
        },
        end() {
          for (const id of routers.keys()) if (!loaded.has(id)) write(id, undefined)
        },
      }
    },
  }
  const projection = await openProjection(localSource(changeLog, routerLoaders(changeLog.db)), memory, {
    log,
  })
  return {
    get: (id) => routers.get(id),
    all: () => routers.values(),
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    position: projection.position,
    waitFor: projection.waitFor,
    isFresh: projection.isFresh,
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}
