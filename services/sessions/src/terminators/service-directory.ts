import { service } from '@overlay/model'
import type { Change } from '@overlay/rpc'
import {
  isDeleted,
  type Memory,
  openProjection,
  type Projection,
  type Source,
} from '@overlay/store/change-log'
import { payloadDecoder } from '@overlay/store/kind-store'
import { bestEffort } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { FIND_SERVICE_MS } from '../limits.js'

/** What circuits and terminators need of a service. */
export interface ServiceInfo {
  readonly id: string
  readonly name: string
  /** Empty: the default strategy. */
  readonly terminatorStrategy: string
  readonly encryptionRequired: boolean
  /** 0: no limit. */
  readonly maxIdleTimeMillis: number
}

/** The services of policy in memory. */
export interface ServiceDirectory extends AsyncDisposable {
  /** As of the last change that was followed. */
  get(id: string): ServiceInfo | undefined
  /** As `get`; asks policy for its changes first if the service is unknown. At most 2 s. */
  find(id: string): Promise<ServiceInfo | undefined>
  findByName(name: string): Promise<ServiceInfo | undefined>
}

/** Returns before the first load. */
export async function openServiceDirectory(source: Source, log: Logger): Promise<ServiceDirectory> {
  const services = new Map<string, ServiceInfo>()
  const ids = new Map<string, string>() // by name
  const projection = await openProjection(source, memoryOf(services, ids), {
    log,
    loaded: 'background',
  })
  const byName = (name: string) => services.get(ids.get(name) ?? '')
  return {
    get: (id) => services.get(id),
    find: (id) => lookUp(projection, () => services.get(id)),
    findByName: (name) => lookUp(projection, () => byName(name)),
    [Symbol.asyncDispose]: () => projection[Symbol.asyncDispose](),
  }
}

async function lookUp<T>(projection: Projection, find: () => T | undefined): Promise<T | undefined> {
  const found = find()
  if (found !== undefined) return found
  await bestEffort(projection.schema, projection.catchUp(AbortSignal.timeout(FIND_SERVICE_MS)))
  return find()
}

const decodeService = payloadDecoder(service)

function memoryOf(services: Map<string, ServiceInfo>, ids: Map<string, string>): Memory {
  const remove = (id: string): void => {
    const { name = '' } = services.get(id) ?? {}
    if (ids.get(name) === id) ids.delete(name) // another service may have the name meanwhile
    services.delete(id)
  }
  const put = (changes: readonly Change[]): void => {
    for (const change of changes) {
      remove(change.id)
      if (isDeleted(change)) continue
      const info = infoOf(change)
      services.set(info.id, info)
      ids.set(info.name, info.id)
    }
  }
  return {
    name: 'services',
    kinds: [service.kind],
    apply: put,
    load() {
      const stale = new Set(services.keys())
      return {
        add(rows) {
          put(rows)
          for (const { id } of rows) stale.delete(id)
        },
        end() {
          for (const id of stale) remove(id)
        },
      }
    },
  }
}

function infoOf(change: Change): ServiceInfo {
  const { name = '', terminatorStrategy, encryptionRequired, maxIdleTimeMillis } = decodeService(change) ?? {}
  return {
    id: change.id,
    name,
    terminatorStrategy: terminatorStrategy ?? '',
    encryptionRequired: encryptionRequired ?? false,
    maxIdleTimeMillis: maxIdleTimeMillis ?? 0,
  }
}
