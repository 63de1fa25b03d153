import { BROKER_LINE_BYTES } from '../limits.js'

/** What a client sends. Only what the product uses: no queue groups, headers, replies or limited subscriptions. */
export type Command =
  | { readonly op: 'connect'; readonly options: ConnectOptions }
  | { readonly op: 'ping' }
  | { readonly op: 'pong' }
  | { readonly op: 'publish'; readonly message: Message }
  | { readonly op: 'subscribe'; readonly subject: string; readonly sid: string }
  | { readonly op: 'unsubscribe'; readonly sid: string }

export interface ConnectOptions {
  readonly user?: string
  readonly pass?: string
}

export interface Message {
  readonly subject: string
  readonly payload: Buffer
}

/** A violation of the protocol. The server sends the text, as nats-server words it, and closes the connection. */
export class ProtocolError extends Error {}

const NEWLINE = 10

interface MessageHead {
  readonly subject: string
  readonly bytes: number
}

/** Cuts the bytes of a connection into commands. Reads the limit of payloads at the start of each message. */
export function commandReader(maxPayload: () => number): (chunk: Buffer) => Iterable<Command> {
  let unread: Buffer = Buffer.alloc(0)
  let head: MessageHead | undefined

  return function* (chunk) {
    unread = unread.length > 0 ? Buffer.concat([unread, chunk]) : chunk
    for (;;) {
      if (head) {
        const { subject, bytes } = head
        if (unread.length < bytes + 2) return
        if (unread.toString('latin1', bytes, bytes + 2) !== '\r\n') throw unknownOperation()
        const payload = unread.subarray(0, bytes)
        unread = unread.subarray(bytes + 2)
        head = undefined
        yield { op: 'publish', message: { subject, payload } }
      } else {
        const end = unread.indexOf(NEWLINE)
        if ((end === -1 ? unread.length : end) > BROKER_LINE_BYTES) {
          throw new ProtocolError('maximum control line exceeded')
        }
        if (end === -1) return
        const line = unread.toString('utf8', 0, end).trim()
        unread = unread.subarray(end + 1)
        const command = parseLine(line)
        if (!('bytes' in command)) yield command
        else if (command.bytes > maxPayload()) throw new ProtocolError('Maximum Payload Violation')
        else head = command
      }
    }
  }
}

function parseLine(line: string): Command | MessageHead {
  const [word = '', ...args] = line.split(/[ \t]+/)
  const [first, second] = args
  switch (word.toUpperCase()) {
    case 'CONNECT':
      return { op: 'connect', options: parseOptions(line.slice(word.length)) }
    case 'PING':
      return { op: 'ping' }
    case 'PONG':
      return { op: 'pong' }
    case 'PUB':
      if (!first || !second || args.length > 2 || !/^\d{1,10}$/.test(second)) throw unknownOperation()
      return { subject: first, bytes: Number(second) }
    case 'SUB':
      if (!first || !second || args.length > 2) throw unknownOperation()
      return { op: 'subscribe', subject: first, sid: second }
    case 'UNSUB':
      if (!first || args.length > 1) throw unknownOperation()
      return { op: 'unsubscribe', sid: first }
    default:
      throw unknownOperation()
  }
}

function parseOptions(json: string): ConnectOptions {
  try {
    const options: unknown = JSON.parse(json)
    if (typeof options === 'object' && options !== null) return options
  } catch {
    // reported below
  }
  throw unknownOperation()
}

const unknownOperation = (): ProtocolError => new ProtocolError('Unknown Protocol Operation')
