import { status } from '@grpc/grpc-js'
import {
  type HealthServer,
  HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from './gen/health/v1/health.js'
import type { HostedService } from './host.js'

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
}

/** The readiness of a process as the standard health service. Every name has the state of the whole process. */
export function openHealth({ name, isReady }: HealthOptions): GrpcHealth {
  const names = new Set(['', name])
  let isStopped = false
  let reading: Promise<Status> | undefined

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
  const handlers: HealthServer = {
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
      call.emit('error', { code: status.UNIMPLEMENTED, details: 'use Check' })
    },
  }

  return {
    service(host) {
      for (const hosted of host.names) names.add(hosted)
      host.server.addService(HealthService, handlers)
    },
    stop() {
      isStopped = true
    },
  }
}
