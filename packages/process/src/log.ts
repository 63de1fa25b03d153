import pino, { type DestinationStream, type Logger } from 'pino'
import { type LogOutput, openLogOutput } from './log-output.js'
import { redact } from './redact.js'
import { toText } from './text-log.js'

export interface LogOptions {
  readonly level: string
  readonly format: 'json' | 'text'
  readonly destination?: DestinationStream // standard output
}

let standard: LogOutput | undefined

/** One for all logs of the process: parts of lines would mix otherwise. */
function standardOutput(): LogOutput {
  standard ??= openLogOutput(1)
  return standard
}

/** JSON lines, or text for people. Redacts secrets at any depth, by the name of their key. */
export function openLog(service: string, { level, format, destination }: LogOptions): Logger {
  const output = destination ?? standardOutput()
  const log = pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      serializers: { err: (err: Error) => redact(pino.stdSerializers.errWithCause(err)) },
    },
    format === 'json' ? output : toText(output),
  )
  const { child } = log
  return Object.assign(log, {
    child(this: Logger, bindings: object, options?: object) {
      return child.call(this, redact(bindings), options) // pino formats the bindings of the first logger only
    },
  })
}
