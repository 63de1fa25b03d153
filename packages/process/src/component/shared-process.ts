import { openLocalServices } from '@overlay/rpc'
import type { Logger } from 'pino'
import { mostSockets } from '../open-files.js'
import { type Health, healthInTime, type OpsOptions, serveOps } from '../ops.js'
import { dropRights, isStopping, untilStopped } from '../process.js'
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
  const missing = (part: PartName): Health => ({
    ready: false,
    checks: { [part]: isStopping() ? 'stopped' : 'starting' },
  })
  const health = async (): Promise<Health> =>
    combinedHealth(
      await Promise.all(
        [...parts.keys()].map((part) => {
          const own = healths.get(part)
          return own ? healthInTime(own, log, PART_MS) : missing(part)
        }),
      ),
    )

  const filesRead = latch(parts.size)
  const rightsDropped = filesRead.opened.then(() => dropRights())
  const served = latch(parts.size)
  const stopped = served.opened.then(() => untilStopped()) // until then a signal ends the process at once
  const gatewayEnded = latch(parts.has('gateway') ? 1 : 0)
  const shared: PartProcess = {
    local: openLocalServices(),
    share: sharing(),
    begin: async () => nothing,
    dropRights() {
      filesRead.arrive()
      return rightsDropped
    },
    mostSockets: () => Math.floor(mostSockets() / 2), // the gateway and the control channel
    async serveOps(part, _listen, { health }) {
      healths.set(part, health)
      return { [Symbol.asyncDispose]: async () => void healths.delete(part) }
    },
    async untilStopped(part) {
      served.arrive()
      const signal = await stopped
      if (part !== 'gateway') await gatewayEnded.opened
      return signal
    },
  }
  const ops = rightsDropped.then(() => serveOps(opsListen, { log, health }))
  const running = [...parts].map(async ([part, run]) => {
    await run(shared)
    if (part === 'gateway') gatewayEnded.arrive()
  })
  await Promise.all([ops, ...running])
  await (await ops)[Symbol.asyncDispose]()
}

interface Shared {
  readonly opened: Promise<AsyncDisposable>
  users: number
}

function sharing(): PartProcess['share'] {
  const all = new Map<string, Shared>()
  return async <T extends AsyncDisposable>(name: string, open: () => Promise<T>): Promise<T> => {
    const shared = all.get(name) ?? { opened: open(), users: 0 }
    all.set(name, shared)
    shared.users++
    const thing = (await shared.opened.catch((err: unknown) => {
      all.delete(name)
      throw err
    })) as T
    const release = async (): Promise<void> => {
      if (--shared.users > 0) return
      all.delete(name)
      await thing[Symbol.asyncDispose]()
    }
    return { ...thing, [Symbol.asyncDispose]: release }
  }
}

/** Shorter than the limit of a check of the whole process, so that one part does not hide the others. */
const PART_MS = 1500

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined }

/** Ready if all parts are. Of checks with one name, a failed one counts. */
function combinedHealth(healths: readonly Health[]): Health {
  const checks: Record<string, string> = {}
  for (const [name, state] of healths.flatMap(({ checks }) => Object.entries(checks)))
    if (checks[name] === undefined || state !== 'ok') checks[name] = state
  return { ready: healths.every(({ ready }) => ready), checks }
}

/** Opens when `count` have arrived. */
function latch(count: number): { arrive(): void; readonly opened: Promise<void> } {
  let missing = count
  const { promise: opened, resolve } = Promise.withResolvers<void>()
  if (missing === 0) resolve()
  return {
    arrive() {
      if (--missing === 0) resolve()
    },
    opened,
  }
}
