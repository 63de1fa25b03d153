import { frameDecoder, type Message } from '../src/index.js'
import { MESSAGE_LIMITS } from '../src/limits.js'

/** All messages in the chunks. */
export function decodeChunks(chunks: Iterable<Buffer>): Message[] {
  const decoder = frameDecoder()
  const messages: Message[] = []
  for (const chunk of chunks) {
    decoder.push(chunk)
    for (let next = decoder.next(MESSAGE_LIMITS); next; next = decoder.next(MESSAGE_LIMITS))
      messages.push(next)
  }
  return messages
}

export function decodeOne(frame: Buffer): Message {
  const [message, ...others] = decodeChunks([frame])
  if (!message || others.length > 0) throw new Error('not one message')
  return message
}
