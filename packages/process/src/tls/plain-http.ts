import type { Socket } from 'node:net'
import { PLAIN_HTTP_MS } from '../limits.js'

/** Whether the bytes begin like a request: a method, and a path, a URL or `*`. */
export const isPlainHttp = (head: Buffer): boolean =>
  /^[A-Z]{3,10} (?:\/|\*|http)/.test(head.toString('latin1', 0, 15))

const TEXT = 'This port speaks TLS.\n'
const ANSWER = `HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${TEXT.length}\r\n\r\n${TEXT}`

/** Says to a client without TLS what is wrong, and closes the connection. */
export function answerPlainHttp(socket: Socket): void {
  const cut = setTimeout(() => socket.destroy(), PLAIN_HTTP_MS)
  socket.once('close', () => clearTimeout(cut))
  socket.resume() // what is left unread would reset the connection, and discard the answer
  socket.end(ANSWER)
}
