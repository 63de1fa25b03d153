import type { Socket } from 'node:net'
import { type Channel, type ChannelOptions, openChannel } from './channel.js'
import { encodeFrame, type FrameDecoder, frameDecoder } from './frame.js'
import { decodeBool, decodeInt32, decodeText, encodeBool, encodeInt32, encodeText } from './headers.js'
import { HELLO_LIMITS } from './limits.js'
import { contentType, HELLO_SEQUENCE, type Headers, headerKey, type Message } from './message.js'
import { decodeVersion, type Version } from './version.js'

/** No hello, or no answer to it: the peer closed, was too slow, refused, or sent something else. */
export class HelloFailed extends Error {
  override readonly name = 'HelloFailed'
}

/** The hello of a router. The socket is paused until `accept`. */
export interface ReceivedHello {
  readonly routerId: string
  readonly version: Version
  /** Copies: they may be kept. */
  readonly headers: Headers
  /** Answers with these headers and opens the channel. It is closed from the start if the peer has closed it. */
  accept(headers: Headers, options: Omit<ChannelOptions, 'decoder'>): Channel
}

/** The answer of a controller to the hello. The socket is paused until `open`. */
export interface AnsweredHello {
  readonly controllerId: string | undefined
  readonly connectionId: string | undefined
  readonly version: Version
  readonly headers: Headers
  open(options: Omit<ChannelOptions, 'decoder'>): Channel
}

/**
 * Reads the first message of a router. Throws HelloFailed, MalformedFrame or MalformedHeader, and destroys the socket
 * then.
 */
export const acceptHello = (socket: Socket, timeoutMs: number): Promise<ReceivedHello> =>
  orDestroy(socket, async () => {
    const { message, decoder } = await readFirst(socket, timeoutMs)
    if (message.type !== contentType.hello) throw new HelloFailed(`a message of type ${message.type}`)
    const routerId = decodeText(message.body)
    if (routerId === '') throw new HelloFailed('a hello without router id')
    const headers = copyOf(message.headers)
    return {
      routerId,
      version: versionIn(headers) ?? UNKNOWN,
      headers,
      accept(answer, options) {
        const own: Headers = new Map([
          ...answer,
          [headerKey.replyFor, encodeInt32(HELLO_SEQUENCE)],
          [headerKey.resultSuccess, encodeBool(true)],
        ])
        socket.write(encodeFrame(contentType.result, HELLO_SEQUENCE, own, Buffer.alloc(0)))
        return openChannel(socket, { ...options, decoder })
      },
    }
  })

/** Sends the hello of a router and reads the answer. Throws like `acceptHello`. */
export const sendHello = (
  socket: Socket,
  hello: { readonly routerId: string; readonly headers: Headers },
  timeoutMs: number,
): Promise<AnsweredHello> =>
  orDestroy(socket, async () => {
    const body = encodeText(hello.routerId)
    socket.write(encodeFrame(contentType.hello, HELLO_SEQUENCE, hello.headers, body))
    const { message, decoder } = await readFirst(socket, timeoutMs)
    const headers = copyOf(message.headers)
    const replyFor = headers.get(headerKey.replyFor)
    if (message.type !== contentType.result || !replyFor || decodeInt32(replyFor) !== HELLO_SEQUENCE)
      throw new HelloFailed(`a message of type ${message.type}`)
    if (!decodeBool(headers.get(headerKey.resultSuccess) ?? encodeBool(false)))
      throw new HelloFailed(`refused: ${decodeText(message.body)}`)
    const version = versionIn(headers)
    if (!version) throw new HelloFailed('a hello without version')
    return {
      controllerId: textIn(headers, headerKey.id),
      connectionId: textIn(headers, headerKey.connectionId),
      version,
      headers,
      open: (options) => openChannel(socket, { ...options, decoder }),
    }
  })

async function orDestroy<T>(socket: Socket, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (err) {
    socket.destroy()
    throw err
  }
}

/** The first message of a connection. */
export interface FirstMessage {
  readonly message: Message
  /** Has the bytes after the message. */
  readonly decoder: FrameDecoder
}

/** Reads the first message, and pauses the socket. Throws HelloFailed, MalformedFrame or MalformedHeader. */
export function readFirst(socket: Socket, timeoutMs: number): Promise<FirstMessage> {
  const decoder = frameDecoder()
  return new Promise<FirstMessage>((resolve, reject) => {
    const timer = setTimeout(
      () => settle(reject, new HelloFailed(`no hello within ${timeoutMs} ms`)),
      timeoutMs,
    )
    const closed = (): void => settle(reject, new HelloFailed('closed before the hello'))
    function settle<T>(how: (value: T) => void, value: T): void {
      clearTimeout(timer)
      socket.off('data', read).off('close', closed)
      socket.pause()
      how(value)
    }
    function read(chunk: Buffer): void {
      try {
        decoder.push(chunk)
        const message = decoder.next(HELLO_LIMITS)
        if (message) settle(resolve, { message, decoder })
      } catch (err) {
        settle(reject, err)
      }
    }
    socket.on('error', () => {}) // 'close' follows; the channel listens later
    socket.on('data', read).on('close', closed)
    if (socket.destroyed) closed()
  })
}

const copyOf = (headers: Headers): Headers =>
  new Map([...headers].map(([key, value]) => [key, Buffer.from(value)] as const))

const textIn = (headers: Headers, key: number): string | undefined => {
  const value = headers.get(key)
  return value && decodeText(value)
}

/** wire: controllers take routers that send no version; routers require that of the controller. */
const UNKNOWN: Version = { version: '', revision: '', buildDate: '', os: '', arch: '' }

function versionIn(headers: Headers): Version | undefined {
  const value = headers.get(headerKey.version)
  return value && decodeVersion(value)
}
