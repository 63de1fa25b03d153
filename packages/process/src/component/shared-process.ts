import { openLocalServices } from '@overlay/rpc'
import type { Logger } from 'pino'
import { COMPONENT_CHECK_MS } from '../limits.js'
import { mostSockets } from '../open-files.js'
import { type Health, healthInTime, type OpsOptions, serveOps } from '../ops.js'
import { dropRights, isStopping, untilStopped } from '../process.js'
import type { ComponentName, ComponentProcess } from './component-process.js'

/** Runs one component until it is stopped. */
export type RunComponent = (process: ComponentProcess) => Promise<void>

/**
 * Runs all components in this process, until it is stopped: the gateway stops first, then the services. Health and metrics are
 * those of the whole process, at one address.
 */
export async function shareProcess(
  components: ReadonlyMap<ComponentName, RunComponent>,
  { opsListen, log }: { readonly opsListen: string; readonly log: Logger },
): Promise<void> {
  const healths = new Map<ComponentName, OpsOptions['health']>()
  const missing = (component: ComponentName): Health => ({
    ready: false,
    checks: { [component]: isStopping() ? 'stopped' : 'starting' },
  })
  const health = async (): Promise<Health> =>
    combinedHealth(
      await Promise.all(
        [...components.keys()].map((component) => {
          const own = healths.get(component)
          return own ? healthInTime(own, log, COMPONENT_CHECK_MS) : missing(component)
        }),
      ),
    )

  const filesRead = latch(components.size)
  const rightsDropped = filesRead.opened.then(() => dropRights())
  const served = latch(components.size)
  const stopped = served.opened.then(() => untilStopped()) // until then a signal ends the process at once
  const gatewayEnded = latch(components.has('gateway') ? 1 : 0)
  const shared: ComponentProcess = {
    local: openLocalServices(),
    share: sharing(),
    begin: async () => nothing,
    dropRights() {
      filesRead.arrive()
      return rightsDropped
    },
    mostSockets: () => Math.floor(mostSockets() / 2), // the gateway and the control channel
    async serveOps(component, _listen, { health }) {
      healths.set(component, health)
      return { [Symbol.asyncDispose]: async () => void healths.delete(component) }
    },
    async untilStopped(component) {
      served.arrive()
      const signal = await stopped
      if (component !== 'gateway') await gatewayEnded.opened
      return signal
    },
  }
  const ops = rightsDropped.then(() => serveOps(opsListen, { log, health }))
  const running = [...components].map(async ([component, run]) => {
    await run(shared)
    if (component === 'gateway') gatewayEnded.arrive()
  })
  await Promise.all([ops, ...running])
  await (await ops)[Symbol.asyncDispose]()
}

interface Shared {
  readonly opened: Promise<AsyncDisposable>
  users: number
}

function sharing(): ComponentProcess['share'] {
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

const nothing: AsyncDisposable = { [Symbol.asyncDispose]: async () => undefined }

/** Ready if all components are. Of checks with one name, a failed one counts. */
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
