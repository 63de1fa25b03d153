import type { LocalServices, PeerName } from '@overlay/rpc'
import { mostSockets } from '../open-files.js'
import { type OpsOptions, serveOps } from '../ops.js'
import { dropRights, guardProcess, type StopSignal, untilStopped } from '../process.js'
import { openTracing, type TracingSetup } from '../tracing/open-tracing.js'

/** A component of the product. */
export type ComponentName = Exclude<PeerName, 'operator'>

/** The process in which a component runs: one of its own, or one that it shares with the other components. */
export interface ComponentProcess {
  /** Through which its components call each other. Absent: all others have processes of their own. */
  readonly local?: LocalServices
  /**
   * What the components of a process share under a name: the first one opens it, with its own settings and log, and the last
   * one closes it. Its members must be functions that do not use `this`.
   */
  share<T extends AsyncDisposable>(name: string, open: () => Promise<T>): Promise<T>
  /** To be called first. Disposing sends the last spans of traces. */
  begin(options: TracingSetup): Promise<AsyncDisposable>
  /** To be called when all files of the program are read: resolves when the process has dropped the rights of root. */
  dropRights(): Promise<void>
  /** The most sockets for one of its components with clients. */
  mostSockets(): number
  /** Serves health and metrics. */
  serveOps(component: ComponentName, listen: string, options: OpsOptions): Promise<AsyncDisposable>
  /** Resolves when the component must stop. */
  untilStopped(component: ComponentName): Promise<StopSignal>
}

/** A process of one component. */
export const ownProcess: ComponentProcess = {
  share: (_name, open) => open(),
  begin(options) {
    guardProcess(options.log)
    return openTracing(options)
  },
  dropRights: async () => dropRights(),
  mostSockets,
  serveOps: (_part, listen, options) => serveOps(listen, options),
  untilStopped,
}
