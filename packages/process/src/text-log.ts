import type { DestinationStream } from 'pino'
import { printable } from './printable.js'

interface Failure {
  readonly stack?: string
  readonly message?: string
  readonly cause?: Failure
}

interface Line {
  readonly time: string
  readonly level: string
  readonly service: string
  readonly msg?: string
  readonly err?: Failure
  readonly [field: string]: unknown
}

/** Takes JSON lines and passes them on as text for people. */
export const toText = (out: DestinationStream & { flushSync?(): void }): DestinationStream => ({
  write: (line) => out.write(textOf(JSON.parse(line) as Line)),
  ...(out.flushSync && { flushSync: () => out.flushSync?.() }),
})

function textOf({ time, level, service, msg = '', err, ...fields }: Line): string {
  const facts = Object.entries(fields).map(([key, value]) => ` ${key}=${plain(value)}`)
  const trace = err ? `\n${stackOf(err)}`.replaceAll('\n', '\n  ') : ''
  return `${time.slice(11, 23)} ${level.padEnd(5)} ${service}: ${msg}${facts.join('')}${trace}\n`
}

const stackOf = ({ stack, message = '', cause }: Failure): string =>
  (stack ?? message) + (cause ? `\ncaused by: ${stackOf(cause)}` : '')

const plain = (value: unknown): string =>
  typeof value === 'string' && /^[^\s="]+$/.test(value) ? printable(value) : printable(JSON.stringify(value))
