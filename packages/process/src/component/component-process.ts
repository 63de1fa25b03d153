import type { LocalServices, PeerName } from '@overlay/rpc'
import { mostSockets } from '../open-files.js'
import { type OpsOptions, serveOps } from '../ops.js'
import { dropRights, guardProcess, type StopSignal, untilStopped } from '../process.js'
import { openTracing, type TracingSetup } from '../tracing/open-tracing.js'

/** A part of the product. */
export type PartName = Exclude<PeerName, 'operator'>

/** The process in which a part runs: one of its own, or one that it shares with the other parts. */
export interface PartProcess {
  /** Through which its parts call each other. Absent: all others have processes of their own. */
  readonly local?: LocalServices
  /**
   * What the parts of a process share under a name: the first one opens it, with its own settings and log, and the last
   * one closes it. Its members must be functions that do not use `this`.
   */
  share<T extends AsyncDisposable>(name: string, open: () => Promise<T>): Promise<T>
  /** To be called first. Disposing sends the last spans of traces. */
  begin(options: TracingSetup): Promise<AsyncDisposable>
  /** To be called when all files of the program are read: resolves when the process has dropped the rights of root. */
  dropRights(): Promise<void>
  /** The most sockets for one of its parts with clients. */
  mostSockets(): number
  /** Serves health and metrics. */
  serveOps(part: PartName, listen: string, options: OpsOptions): Promise<AsyncDisposable>
  /** Resolves when the part must stop. */
  untilStopped(part: PartName): Promise<StopSignal>
}

/** A process of one part. */
export const ownProcess: PartProcess = {
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
