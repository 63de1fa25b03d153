import { openLocalServices } from '@overlay/rpc'
import type { Logger } from 'pino'
import { type Health, healthInTime, type OpsOptions, serveOps } from '../process/ops.js'
import { dropRights, untilStopped } from '../process/process.js'
import type { PartName, PartProcess } from './part-process.js'

/** Runs one part until it is stopped. */
export type RunPart = (process: PartProcess) => Promise<void>

/**
 * Runs all parts in this process, until it is stopped: the gateway stops first, then the services. Health and metrics are
 * those of the whole process, at one address.
 */
export async function shareProcess(
  parts: ReadonlyMap<PartName, RunPart>,
  { opsListen, log }: { readonly opsListen: string; readonly log: Logger },
): Promise<void> {
  const healths = new Map<PartName, OpsOptions['health']>()
  const health = async (): Promise<Health> =>
    together(
      await Promise.all(
        [...parts.keys()].map((part) => {
          const health = healths.get(part)
          return health ? healthInTime(health, log) : { ready: false, checks: { [part]: 'starting' } }
        }),
      ),
    )
  await using _ops = await serveOps(opsListen, { log, health })

  const isRead = latch(parts.size)
  const rightsDropped = isRead.opened.then(() => dropRights())
  const stopped = untilStopped()
  const gatewayEnded = latch(parts.has('gateway') ? 1 : 0)
  const process: PartProcess = {
    local: openLocalServices(),
    begin: async () => nothing,
    dropRights() {
      isRead.arrive()
      return rightsDropped
    },
    async serveOps(part, _listen, { health }) {
      healths.set(part, health)
      return { [Symbol.asyncDispose]: async () => void healths.delete(part) }
    },
    async untilStopped(part) {
      const signal = await stopped
      if (part !== 'gateway') await gatewayEnded.opened
      return signal
    },
  }
  await Promise.all(
    [...parts].map(async ([part, run]) => {
      await run(process)
      if (part === 'gateway') gatewayEnded.arrive()
    }),
  )
}

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined }

/** Ready if all parts are. Of checks with one name, a failed one counts. */
function together(healths: readonly Health[]): Health {
  const checks: Record<string, string> = {}
  for (const [name, state] of healths.flatMap(({ checks }) => Object.entries(checks)))
    if (checks[name] === undefined || state !== 'ok') checks[name] = state
  return { ready: healths.every(({ ready }) => ready), checks }
}

/** Opens when `count` have arrived. */
function latch(count: number): { arrive(): void; readonly opened: Promise<void> } {
  let missing = count
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  if (missing === 0) open()
  return {
    arrive() {
      if (--missing === 0) open()
    },
    opened,
  }
}
