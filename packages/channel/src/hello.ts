import type { Socket } from 'node:net'
import { type Channel, type ChannelOptions, openChannel } from './channel.js'
import { encodeFrame, type FrameDecoder, frameDecoder } from './frame.js'
import { decodeText, encodeBool, encodeInt32 } from './headers.js'
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

/**
 * Reads the first message of a router. Throws HelloFailed, MalformedFrame or MalformedHeader, and destroys the socket
 * then.
 */
export async function acceptHello(socket: Socket, timeoutMs: number): Promise<ReceivedHello> {
  try {
    const { message, decoder } = await readFirst(socket, timeoutMs)
    if (message.type !== contentType.hello) throw new HelloFailed(`a message of type ${message.type}`)
    const routerId = decodeText(message.body)
    if (routerId === '') throw new HelloFailed('a hello without router id')
    const headers = new Map([...message.headers].map(([key, value]) => [key, Buffer.from(value)] as const))
    const version = headers.get(headerKey.version)
    return {
      routerId,
      version: version ? decodeVersion(version) : UNKNOWN,
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

/** wire: controllers take routers that send no version; routers require that of the controller. */
const UNKNOWN: Version = { version: '', revision: '', buildDate: '', os: '', arch: '' }
