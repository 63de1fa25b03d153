import { type ServerWritableStream, status } from '@grpc/grpc-js'
import {
  type HealthCheckRequest,
  type HealthCheckResponse,
  type HealthServer,
  HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from './gen/health/v1/health.js'
import type { HostedService, ServiceHost } from './host.js'
import { HEALTH_REFRESH_MS } from './limits.js'
import { onAbort } from './on-abort.js'

/** The state of a process for `grpc.health.v1`, which several servers may serve. */
export interface GrpcHealth {
  readonly service: HostedService
  /** The process stops: from now on, it does not serve. */
  stop(): void
}

export interface HealthOptions {
  /** Of the process: a name under which its state is known, besides the empty one and those of its services. */
  readonly name: string
  readonly isReady: () => Promise<boolean>
  /** Calls `refresh` at intervals. Returns a function that stops it. */
  readonly startRefreshing?: (refresh: () => void) => () => void
}

type Watcher = (state: Status) => void

/** The readiness of a process as the standard health service. Every name has the state of the whole process. */
export function openHealth({ name, isReady, startRefreshing = everySecond }: HealthOptions): GrpcHealth {
  const names = new Set(['', name])
  const watchers = new Set<Watcher>()
  let isStopped = false
  let reading: Promise<Status> | undefined
  let stopRefreshing: (() => void) | undefined

  const read = async (): Promise<Status> => {
    const isServing = await isReady().catch(() => false)
    return isServing && !isStopped ? Status.SERVING : Status.NOT_SERVING
  }
  /** One read at a time: probes must not add load to a database that is slow. */
  function current(): Promise<Status> {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }
  const notify = (state: Status): void => {
    for (const watcher of watchers) watcher(state)
  }
  const refresh = (): void => void current().then(notify)

  function addWatcher(watcher: Watcher): () => void {
    watchers.add(watcher)
    stopRefreshing ??= startRefreshing(refresh)
    refresh()
    return () => {
      watchers.delete(watcher)
      if (watchers.size > 0) return
      stopRefreshing?.()
      stopRefreshing = undefined
    }
  }

  const handlers = (host: ServiceHost): HealthServer => ({
    check({ request: { service } }, answer) {
      if (names.has(service)) void current().then((state) => answer(null, { status: state }))
      else answer({ code: status.NOT_FOUND, details: 'unknown service' })
    },
    list(_call, answer) {
      void current().then((state) =>
        answer(null, { statuses: Object.fromEntries([...names].map((one) => [one, { status: state }])) }),
      )
    },
    watch(call) {
      const send = sender(call)
      const isKnown = names.has(call.request.service)
      if (!isKnown) send(Status.SERVICE_UNKNOWN)
      const removeWatcher = isKnown ? addWatcher(send) : () => undefined
      const removeListener = onAbort(host.stopping, () => {
        if (isKnown) send(Status.NOT_SERVING)
        call.emit('error', { code: status.UNAVAILABLE, details: 'the server stops' })
      })
      call.on('close', removeListener).on('close', removeWatcher)
    },
  })

  return {
    service(host) {
      for (const hosted of host.names) names.add(hosted)
      host.server.addService(HealthService, handlers(host))
    },
    stop() {
      isStopped = true
      notify(Status.NOT_SERVING)
    },
  }
}

/** Sends a state only if it differs from the one before. */
function sender(call: ServerWritableStream<HealthCheckRequest, HealthCheckResponse>): Watcher {
  let last: Status | undefined
  return (state) => {
    if (state === last || call.writableEnded || call.destroyed) return
    last = state
    call.write({ status: state })
  }
}

function everySecond(refresh: () => void): () => void {
  const timer = setInterval(refresh, HEALTH_REFRESH_MS)
  return () => clearInterval(timer)
}
