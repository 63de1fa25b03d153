import { finished } from 'node:stream/promises'
import { openLog } from '@overlay/process'
import { type LauncherSettings, logLimits } from '../settings/settings.js'
import { openLogFile } from '../system/log-file.js'

type JournalSettings = Pick<LauncherSettings, 'logLevel' | 'logFormat' | 'logMib' | 'logFiles'>

export type Log = ReturnType<typeof openLog>

/** What the launcher does: short lines on the screen, lines with time and level in its log. */
export interface Journal {
  readonly log: Log
  /** A step of start or stop. */
  step(line: string): void
  /** Something that needs an operator, such as the restart of a process. */
  warn(line: string): void
  /** The start has failed. The caller shows the error. */
  failed(err: unknown): void
  close(): Promise<void>
}

export function openJournal(path: string, settings: JournalSettings, print: (line: string) => void): Journal {
  const file = openLogFile(path, logLimits(settings), print)
  const destination = file.input()
  const { logLevel: level, logFormat: format } = settings
  const log = openLog('launcher', { level, format, destination })
  return {
    log,
    step(line) {
      print(line)
      log.info({ step: line }, 'step')
    },
    warn(line) {
      print(line)
      log.warn({ event: line }, 'unexpected event')
    },
    failed: (err) => log.error({ err }, 'start failed'),
    async close() {
      await finished(destination.end())
      await file.close()
    },
  }
}
