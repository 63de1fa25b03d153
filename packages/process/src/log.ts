import pino, { type DestinationStream, type Logger } from 'pino'
import { bufferedOutput, type Output } from './buffered-output.js'
import { fixedLines, type WriteFacts } from './fixed-lines.js'
import { redact } from './redact.js'
import { toText } from './text-log.js'

export interface LogOptions {
  readonly level: string
  readonly format: 'json' | 'text'
  readonly destination?: DestinationStream // standard output
}

export interface Log extends Logger {
  /**
   * A writer of lines at `info` with one message and these members. It costs less than `info`.
   * Throws if a name is that of a secret.
   */
  fixedLines<N extends string>(message: string, names: readonly N[]): WriteFacts<N>
}

let standard: Output | undefined

/** One for all logs of the process: parts of lines would mix otherwise. */
function standardOutput(): Output {
  standard ??= bufferedOutput(1)
  return standard
}

/** JSON lines, or text for people. Redacts secrets at any depth, by the name of their key. */
export function openLog(service: string, { level, format, destination }: LogOptions): Log {
  const output = destination ?? standardOutput()
  const out = format === 'json' ? output : toText(output)
  const log = pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      serializers: { err: (err: Error) => redact(pino.stdSerializers.errWithCause(err)) },
    },
    out,
  )
  const { child } = log
  return Object.assign(log, {
    child(this: Logger, bindings: object, options?: object) {
      return child.call(this, redact(bindings), options) // pino formats the bindings of the first logger only
    },
    fixedLines<N extends string>(message: string, names: readonly N[]): WriteFacts<N> {
      const write = fixedLines({ service, level: 'info', message }, names, (line) => out.write(line))
      return (facts) => {
        if (log.isLevelEnabled('info')) write(facts)
      }
    },
  })
}
