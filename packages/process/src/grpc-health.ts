import { type GrpcHealth, openHealth, serveHealth } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Health, healthInTime } from './ops.js'
import { splitAddress } from './settings.js'

/** The readiness of the process `name`, for `grpc.health.v1`. */
export const grpcHealth = (name: string, health: () => Promise<Health> | Health, log: Logger): GrpcHealth =>
  openHealth({ name, isReady: async () => (await healthInTime(health, log)).ready })

/** Serves the health at the address of OVERLAY_GRPC_HEALTH_LISTEN, if it is set. */
export const serveGrpcHealth = async (
  listen: string | undefined,
  health: GrpcHealth,
  log: Logger,
): Promise<AsyncDisposable | undefined> =>
  listen === undefined ? undefined : serveHealth(splitAddress(listen), health, log)
