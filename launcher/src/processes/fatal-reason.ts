interface Failure {
  readonly message?: string
  readonly cause?: Failure
}

/** Why a process has ended, by the last line at `fatal` at the end of its log, in either format. Undefined: it has logged no reason. */
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
