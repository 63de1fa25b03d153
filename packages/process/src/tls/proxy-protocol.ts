import { isIPv4, isIPv6, type Socket } from 'node:net'
import { plainAddress } from '@overlay/rpc'

/** The header that a balancer puts before a connection that it forwards. */
export interface ProxyHeader {
  /** Length of the header; the client's bytes follow. */
  readonly bytes: number
  /** Of the client; undefined when the connection is the balancer's own, such as a health check. */
  readonly address: string | undefined
}

const V1_WORD = Buffer.from('PROXY ')
const V1_BYTES = 107
const V2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V2_BYTES = 1024

/**
 * Parses a header of the PROXY protocol, version 1 or 2, at the start of `head`. Returns 'partial' when more bytes are
 * needed, undefined when there is no header. Throws if it is malformed.
 */
export function parseProxyHeader(head: Buffer): ProxyHeader | 'partial' | undefined {
  if (beginsLike(head, V1_WORD)) return parseText(head)
  if (beginsLike(head, V2_SIGNATURE)) return parseBinary(head)
  return undefined
}

/** Whether the bytes begin with a header of either version, as far as it identifies the protocol. */
export const beginsWithProxyHeader = (head: Buffer): boolean =>
  [V1_WORD, V2_SIGNATURE].some((word) => head.length >= word.length && beginsLike(head, word))

function beginsLike(head: Buffer, word: Buffer): boolean {
  const length = Math.min(head.length, word.length)
  return head.subarray(0, length).equals(word.subarray(0, length))
}

function parseText(head: Buffer): ProxyHeader | 'partial' {
  const end = head.subarray(0, V1_BYTES).indexOf('\r\n')
  if (end < 0) {
    if (head.length < V1_BYTES) return 'partial'
    throw new Error('the PROXY header does not end')
  }
  const [, family, source = '', ...rest] = head.toString('latin1', 0, end).split(' ')
  const bytes = end + 2
  if (family === 'UNKNOWN') return { bytes, address: undefined }
  const isValid = (family === 'TCP4' && isIPv4(source)) || (family === 'TCP6' && isIPv6(source))
  if (!isValid || rest.length !== 3) throw new Error('the PROXY header is malformed')
  return { bytes, address: plainAddress(source) }
}

const FIXED_BYTES = 16
const addressBytes: Readonly<Record<number, number>> = { 1: 4, 2: 16 } // IPv4, IPv6

function parseBinary(head: Buffer): ProxyHeader | 'partial' {
  if (head.length < FIXED_BYTES) return 'partial'
  const [version, command] = [head.readUInt8(12) >> 4, head.readUInt8(12) & 15]
  const bytes = FIXED_BYTES + head.readUInt16BE(14)
  if (version !== 2 || command > 1) throw new Error('the PROXY header is of an unknown version')
  if (bytes > V2_BYTES) throw new Error('the PROXY header is too long')
  if (head.length < bytes) return 'partial'
  const length = command === 0 ? undefined : addressBytes[head.readUInt8(13) >> 4]
  if (length === undefined) return { bytes, address: undefined }
  if (bytes < FIXED_BYTES + 2 * length + 4) throw new Error('the PROXY header is too short')
  return { bytes, address: plainAddress(textOf(head.subarray(FIXED_BYTES, FIXED_BYTES + length))) }
}

function textOf(address: Buffer): string {
  if (address.length === 4) return address.join('.')
  return Array.from({ length: 8 }, (_, at) => address.readUInt16BE(2 * at).toString(16)).join(':')
}

/** Reads the header, if there is one, from a new connection and leaves the bytes after it unread. */
export function takeProxyHeader(socket: Socket, withinMs: number): Promise<ProxyHeader | undefined> {
  return new Promise((resolve, reject) => {
    let head = Buffer.alloc(0)
    const timer = setTimeout(() => fail(new Error('no PROXY header in time')), withinMs)
    const stop = (): void => {
      clearTimeout(timer)
      socket.off('readable', read).off('end', ended).off('close', ended)
    }
    const fail = (reason: unknown): void => {
      stop()
      reject(reason)
    }
    const ended = (): void => fail(new Error('the connection ended before its PROXY header'))
    const read = (): void => {
      const chunk: Buffer | null = socket.read()
      if (!chunk) return
      head = Buffer.concat([head, chunk])
      try {
        const header = parseProxyHeader(head)
        if (header === 'partial') return
        stop()
        const rest = head.subarray(header?.bytes ?? 0)
        if (rest.length > 0) socket.unshift(rest)
        resolve(header)
      } catch (err) {
        fail(err)
      }
    }
    socket.on('readable', read).on('end', ended).on('close', ended)
  })
}
