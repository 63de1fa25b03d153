import type { Database } from '@overlay/platform/postgres'
import {
  type Context,
  Fault,
  faults,
  type IdentityServiceService,
  type MaintenanceServiceService,
  type Methods,
  ownContext,
} from '@overlay/rpc'
import type { Logger } from 'pino'
import { beginRun, endRun, type JobName, type Run } from '../store/job-runs.js'

/** Who looks after which schema, in the order in which they are asked. */
export type Owners = Readonly<Record<string, Methods<MaintenanceServiceService>>>

export interface JobGrounds {
  readonly db: Database
  readonly databaseUrl: string
  readonly owners: Owners
  readonly log: Logger
}

export type JobCalls = Pick<
  Methods<IdentityServiceService>,
  'startIntegrityRun' | 'getIntegrityRun' | 'takeSnapshot'
>

/** What a job does while it is under way. */
export type Work<T> = (run: Run, context: Context) => Promise<T>

export interface Jobs extends AsyncDisposable {
  /** Begins, or refuses with RATE_LIMITED; what follows goes on by itself. */
  start<T>(job: JobName, isFixing: boolean, limitMs: number, by: Context, work: Work<T>): Promise<Started<T>>
}

export interface Started<T> {
  readonly ended: Promise<T>
}

/** The jobs of this replica. They outlive the request that begins them, not the process. */
export function openJobs({ db, databaseUrl, log }: JobGrounds): Jobs {
  const stop = new AbortController()
  const running = new Set<Promise<unknown>>()

  async function run<T>(run: Run, limitMs: number, by: Context, work: Work<T>): Promise<T> {
    const signal = AbortSignal.any([stop.signal, run.held.lost, AbortSignal.timeout(limitMs)])
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
        log.warn({ err, job: run.job }, 'end of a job not noted') // whoever looks next sees that nobody is at it
      })
    }
  }

  return {
    async start(job, isFixing, limitMs, by, work) {
      stop.signal.throwIfAborted()
      const begun = await beginRun(db, databaseUrl, job, isFixing)
      const ended = run(begun, limitMs, by, work)
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

/** Nothing that only our log may know. */
function textOf(err: unknown): string {
  if (!(err instanceof Fault)) return faults.UNHANDLED[2]
  const { message, detail } = err
  return typeof detail === 'string' ? `${message}: ${detail}` : message
}
