import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Build, build } from '@overlay/process'
import { openSerial } from '@overlay/process/async'
import { errorText } from '../system/error-text.js'
import { ignoreMissing } from '../system/files.js'
import type { Home } from './home.js'

/** Written to the home while the product runs. Times are in ISO 8601. */
export interface StatusRecord extends Build {
  readonly launcher: number // process id
  readonly startedAt: string
  readonly stoppedAt?: string // absent: it runs, or has been killed
  readonly address: string
  readonly ctrlAddress: string
  /** `host:port` of the metrics of all processes. Absent: not all processes have been ready yet. */
  readonly metricsAddress?: string
  /** Description without secrets. */
  readonly database: string
  readonly snapshots: string // directory
  readonly processes: readonly ProcessRecord[]
}

export interface ProcessRecord {
  readonly name: string
  readonly ops: string // address of its health checks
  readonly restarts: number
  readonly pid?: number // absent: it has not been started yet
  readonly startedAt?: string
}

const STATUS_FILE = 'status.json'

type Given = Pick<StatusRecord, 'address' | 'ctrlAddress' | 'database' | 'snapshots'>

export interface StatusKeeper {
  processes(): readonly ProcessRecord[]
  /** To be called after each start of a process. */
  started(name: string, pid: number): void
  serves(metricsAddress: string): void
  stopped(): Promise<void>
}

/** Keeps the record of this start in the home. A record that cannot be written is reported; the product continues. */
export function keepStatus(
  home: Pick<Home, 'write'>,
  given: Given,
  planned: readonly Pick<ProcessRecord, 'name' | 'ops'>[],
  print: (line: string) => void,
): StatusKeeper {
  const serially = openSerial()
  let record: StatusRecord = {
    ...build,
    ...given,
    launcher: process.pid,
    startedAt: now(),
    processes: planned.map(({ name, ops }) => ({ name, ops, restarts: 0 })),
  }
  const change = (members: Partial<StatusRecord>): Promise<void> => {
    record = { ...record, ...members }
    const text = `${JSON.stringify(record, null, 2)}\n`
    return serially(() => home.write(STATUS_FILE, text)).catch((err: unknown) =>
      print(`${STATUS_FILE} not written: ${errorText(err)}`),
    )
  }
  void change({})
  return {
    processes: () => record.processes,
    started(name, pid) {
      const restarted = (one: ProcessRecord): ProcessRecord => ({
        ...one,
        restarts: one.pid === undefined ? 0 : one.restarts + 1,
        pid,
        startedAt: now(),
      })
      void change({ processes: record.processes.map((one) => (one.name === name ? restarted(one) : one)) })
    },
    serves(metricsAddress) {
      void change({ metricsAddress })
    },
    stopped: () => change({ stoppedAt: now() }),
  }
}

const now = (): string => new Date().toISOString()

/** The record of the last start. Undefined: there was none. */
export async function readStatusRecord(home: string): Promise<StatusRecord | undefined> {
  const text = await readFile(join(home, STATUS_FILE), 'utf8').catch(ignoreMissing)
  return text === undefined ? undefined : JSON.parse(text)
}
