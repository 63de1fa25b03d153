import {
  type Context,
  Fault,
  faults,
  type MaintenanceServiceService,
  type Methods,
  ownContext,
} from '@overlay/rpc'
import type { Database } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { beginRun, endRun, type JobName, type Run } from './stored-runs.js'

/** The maintenance service of each schema, in the order of the checks. */
export type Maintenance = Readonly<Record<string, Methods<MaintenanceServiceService>>>

export interface JobDeps {
  readonly db: Database
  readonly databaseUrl: string
  readonly maintenance: Maintenance
  /** Directory of all snapshots. Absent: they are refused. */
  readonly snapshots: string | undefined
  readonly snapshotLimitMs: number
  readonly snapshotMaxBytes: number
  readonly log: Logger
}

/** What a job does. */
export type Work<T> = (run: Run, context: Context) => Promise<T>

export interface Jobs extends AsyncDisposable {
  /** Begins a job, or refuses with RATE_LIMITED. It continues after the call returns. */
  start<T>(
    job: JobName,
    isFixing: boolean,
    limitMs: number,
    by: Context,
    work: Work<T>,
  ): Promise<{ readonly ended: Promise<T> }>
}

/** The jobs of this replica. They outlive the request that starts them, not the process. */
export function openJobs({ db, databaseUrl, log }: Pick<JobDeps, 'db' | 'databaseUrl' | 'log'>): Jobs {
  const stop = new AbortController()
  const running = new Set<Promise<unknown>>()

  async function perform<T>(run: Run, limitMs: number, by: Context, work: Work<T>): Promise<T> {
    const signal = AbortSignal.any([stop.signal, run.lock.lost, AbortSignal.timeout(limitMs)])
    const { caller, requestId, traceparent } = by
    let error: string | undefined
    try {
      const result = await work(run, { ...ownContext(signal), caller, requestId, traceparent })
      log.info({ job: run.job, requestId }, 'job done')
      return result
    } catch (err) {
      error = signal.aborted ? String(signal.reason?.message) : textOf(err)
      log.error({ err, job: run.job, requestId }, 'job failed')
      throw err
    } finally {
      await endRun(db, run, error).catch((err: unknown) => {
        log.warn({ err, job: run.job }, 'end of a job not noted') // the next reader finds its lock free
      })
    }
  }

  return {
    async start(job, isFixing, limitMs, by, work) {
      stop.signal.throwIfAborted()
      const run = await beginRun(db, databaseUrl, job, isFixing)
      const ended = perform(run, limitMs, by, work)
      const settled = ended
        .catch(() => undefined) // logged where it failed
        .finally(() => running.delete(settled))
      running.add(settled)
      return { ended }
    },

    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the process that was at it has been stopped'))
      await Promise.all(running)
    },
  }
}

/** The text for clients: without what only the log may contain. */
function textOf(err: unknown): string {
  if (!(err instanceof Fault)) return faults.UNHANDLED[2]
  const { message, detail } = err
  return typeof detail === 'string' ? `${message}: ${detail}` : message
}
