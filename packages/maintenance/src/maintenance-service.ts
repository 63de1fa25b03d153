import { Fault, type MaintenanceServiceService, type Methods } from '@overlay/rpc'
import type { Check } from './check.js'
import { exportSchema } from './snapshot/export.js'

export interface MaintenanceOptions {
  readonly schema: string
  readonly databaseUrl: string
  /** The directory of all snapshots. Absent: they are refused. */
  readonly snapshots: string | undefined
  readonly checks: readonly Check[]
}

/** The part of each service in the jobs that concern all schemas. */
export const maintenanceService = ({
  schema,
  databaseUrl,
  snapshots,
  checks,
}: MaintenanceOptions): Methods<MaintenanceServiceService> => ({
  async *check({ fix }, context) {
    for (const check of checks)
      for await (const findings of check({ fix, context })) {
        context.signal.throwIfAborted()
        if (findings.length > 0) yield { findings: [...findings] }
      }
  },

  async *export({ snapshot, directory, maxBytes }, { signal }) {
    if (snapshots === undefined) throw noSnapshots(schema)
    yield* exportSchema(databaseUrl, schema, { snapshots, snapshot, directory, maxBytes }, signal)
  },
})

/** A service without a directory of snapshots refuses them. */
export const noSnapshots = (service: string): Fault =>
  new Fault('METHOD_NOT_ALLOWED', `${service} has no directory of snapshots: OVERLAY_SNAPSHOTS is not set`)
