/** What a client of the NATS core protocol says. */
export type Command =
  | { readonly op: 'connect'; readonly options: ConnectOptions }
  | { readonly op: 'ping' }
  | { readonly op: 'pong' }
  | { readonly op: 'publish'; readonly message: Message }
  | { readonly op: 'subscribe'; readonly subject: string; readonly queue?: string; readonly sid: string }
  | { readonly op: 'unsubscribe'; readonly sid: string; readonly afterMessages?: number }

export interface ConnectOptions {
  readonly verbose?: boolean
  readonly echo?: boolean
  readonly headers?: boolean
  readonly no_responders?: boolean
  readonly user?: string
  readonly pass?: string
}

export interface Message {
  readonly subject: string
  readonly reply?: string
  readonly headerBytes: number // of the payload; 0: it has no header
  readonly payload: Buffer
}

/** A client that does not keep to the protocol. The text is what the real server says, then it hangs up. */
export class ProtocolError extends Error {}

const longestLine = 4096
const newline = 10

/** Cuts a connection's bytes into commands. The limit of a message is asked for when one begins. */
export function commandReader(maxPayload: () => number): (chunk: Buffer) => Iterable<Command> {
  let unread: Buffer = Buffer.alloc(0)
  let awaited: (Omit<Message, 'payload'> & { bytes: number }) | undefined

  return function* (chunk) {
    unread = unread.length > 0 ? Buffer.concat([unread, chunk]) : chunk
    for (;;) {
      if (awaited) {
        const { bytes, ...head } = awaited
        if (unread.length < bytes + 2) return
        if (unread.toString('latin1', bytes, bytes + 2) !== '\r\n') throw unknownOperation()
        const payload = unread.subarray(0, bytes)
        unread = unread.subarray(bytes + 2)
        awaited = undefined
        yield { op: 'publish', message: { ...head, payload } }
      } else {
        const end = unread.indexOf(newline)
        if ((end === -1 ? unread.length : end) > longestLine) {
          throw new ProtocolError('maximum control line exceeded')
        }
        if (end === -1) return
        const line = unread.toString('utf8', 0, end).trim()
        unread = unread.subarray(end + 1)
        const command = read(line)
        if (!('bytes' in command)) yield command
        else if (command.bytes > maxPayload()) throw new ProtocolError('Maximum Payload Violation')
        else awaited = command
      }
    }
  }
}

function read(line: string): Command | (Omit<Message, 'payload'> & { bytes: number }) {
  const [word = '', ...rest] = line.split(/[ \t]+/)
  switch (word.toUpperCase()) {
    case 'CONNECT':
      return { op: 'connect', options: parse(line.slice(word.length)) }
    case 'PING':
      return { op: 'ping' }
    case 'PONG':
      return { op: 'pong' }
    case 'PUB': {
      const bytes = count(rest.pop())
      return { ...addressed(rest), headerBytes: 0, bytes }
    }
    case 'HPUB': {
      const bytes = count(rest.pop())
      const headerBytes = count(rest.pop())
      if (headerBytes > bytes) throw unknownOperation()
      return { ...addressed(rest), headerBytes, bytes }
    }
    case 'SUB': {
      const sid = rest.pop()
      const [subject, queue, ...more] = rest
      if (!sid || !subject || more.length > 0) throw unknownOperation()
      return { op: 'subscribe', subject, sid, ...(queue && { queue }) }
    }
    case 'UNSUB': {
      const [sid, afterMessages] = rest
      if (!sid) throw unknownOperation()
      return { op: 'unsubscribe', sid, ...(afterMessages && { afterMessages: count(afterMessages) }) }
    }
    default:
      throw unknownOperation()
  }
}

function addressed([subject, reply, ...more]: readonly string[]): { subject: string; reply?: string } {
  if (!subject || more.length > 0) throw unknownOperation()
  return reply ? { subject, reply } : { subject }
}

function count(text: string | undefined): number {
  if (!text || !/^\d{1,10}$/.test(text)) throw unknownOperation()
  return Number(text)
}

function parse(json: string): ConnectOptions {
  try {
    const options: unknown = JSON.parse(json)
    if (typeof options === 'object' && options !== null) return options
  } catch {
    // said below
  }
  throw unknownOperation()
}

const unknownOperation = (): ProtocolError => new ProtocolError('Unknown Protocol Operation')
