import type { Socket } from 'node:net'
import {
  type Channel,
  type ChannelOptions,
  contentType,
  decodeBool,
  decodeInt32,
  decodeText,
  decodeVersion,
  encodeBool,
  encodeFrame,
  encodeText,
  HELLO_SEQUENCE,
  type Headers,
  HelloFailed,
  headerKey,
  openChannel,
  readFirst,
  type Version,
} from '@overlay/channel'

/** The answer of a controller to the hello. The socket is paused until `open`. */
export interface AnsweredHello {
  readonly controllerId: string | undefined
  readonly connectionId: string | undefined
  readonly version: Version
  readonly headers: Headers
  open(options: Omit<ChannelOptions, 'decoder'>): Channel
}

/** Sends the hello of a router and reads the answer. Throws like `acceptHello`. */
export async function sendHello(
  socket: Socket,
  hello: { readonly routerId: string; readonly headers: Headers },
  timeoutMs: number,
): Promise<AnsweredHello> {
  try {
    const body = encodeText(hello.routerId)
    socket.write(encodeFrame(contentType.hello, HELLO_SEQUENCE, hello.headers, body))
    const { message, decoder } = await readFirst(socket, timeoutMs)
    const headers = message.headers
    const replyFor = headers.get(headerKey.replyFor)
    if (message.type !== contentType.result || !replyFor || decodeInt32(replyFor) !== HELLO_SEQUENCE)
      throw new HelloFailed(`a message of type ${message.type}`)
    if (!decodeBool(headers.get(headerKey.resultSuccess) ?? encodeBool(false)))
      throw new HelloFailed(`refused: ${decodeText(message.body)}`)
    const version = headers.get(headerKey.version)
    if (!version) throw new HelloFailed('a hello without version')
    return {
      controllerId: textIn(headers, headerKey.id),
      connectionId: textIn(headers, headerKey.connectionId),
      version: decodeVersion(version),
      headers,
      open: (options) => openChannel(socket, { ...options, decoder }),
    }
  } catch (err) {
    socket.destroy()
    throw err
  }
}

const textIn = (headers: Headers, key: number): string | undefined => {
  const value = headers.get(key)
  return value && decodeText(value)
}
