import { open, stat } from 'node:fs/promises'
import { LOG_END_BYTES } from '../limits.js'
import { ignoreMissing } from '../system/files.js'

interface Failure {
  readonly message?: string
  readonly cause?: Failure
}

/** How long a log is before a process starts, for `fatalReason`. */
export const lengthOf = async (logFile: string): Promise<number> =>
  (await stat(logFile).catch(ignoreMissing))?.size ?? 0

/** Why a process has ended, by the last line at `fatal` in its log after `from`. Undefined: it has logged no reason. */
export async function fatalReason(logFile: string, from: number): Promise<string | undefined> {
  const file = await open(logFile).catch(ignoreMissing)
  if (!file) return undefined
  try {
    const { size } = await file.stat()
    const start = size < from ? 0 : from // a shorter file is a new one
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(LOG_END_BYTES),
      0,
      LOG_END_BYTES,
      Math.max(start, size - LOG_END_BYTES),
    )
    return fatalReasonIn(buffer.subarray(0, bytesRead).toString())
  } finally {
    await file.close()
  }
}

/** The same by the end of a log in either format. */
export function fatalReasonIn(text: string): string | undefined {
  const lines = text.split('\n')
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = lines[at] ?? ''
    if (line.startsWith('{"level":"fatal"')) return reasonOf(line)
    const [, rest] = /^\S+ fatal (.*)$/.exec(line) ?? []
    if (rest !== undefined)
      return [rest, /^ {2}\w*: (.*)$/.exec(lines[at + 1] ?? '')?.[1]].filter(Boolean).join(': ')
  }
  return undefined
}

function reasonOf(line: string): string | undefined {
  try {
    const { service, reason, err, msg } = JSON.parse(line)
    return [service, reason ?? (err ? messagesOf(err) : msg)].filter(Boolean).join(': ')
  } catch {
    return undefined
  }
}

const messagesOf = ({ message = '', cause }: Failure): string =>
  cause?.message && !message.includes(cause.message) ? `${message}: ${messagesOf(cause)}` : message
