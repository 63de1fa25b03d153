import type { Duplex } from 'node:stream'
import {
  contentType,
  type FrameDecoder,
  frameDecoder,
  HELLO_LIMITS,
  type Headers,
  headerKey,
} from '@overlay/channel'
import { type HelloRefusal, versionInfoIn } from '../domain/hello.js'

/** The first message of a router. */
export interface Hello {
  readonly routerId: string
  readonly versionInfo: ReturnType<typeof versionInfoIn>
  /** Protobuf `Listeners`. */
  readonly linkListeners: Buffer
  /** Has what was received beyond the hello. */
  readonly decoder: FrameDecoder
}

/** A connection that gets no channel. */
export class Refused extends Error {
  override readonly name = 'Refused'
  constructor(
    readonly reason: HelloRefusal,
    detail?: string,
  ) {
    super(detail ?? reason)
  }
}

const MAX_ID_BYTES = 64

/** Reads the hello, and nothing more of the socket. Throws Refused. */
export function receiveHello(socket: Duplex, withinMs: number): Promise<Hello> {
  return new Promise((resolve, reject) => {
    const decoder = frameDecoder()
    const late = setTimeout(() => stop(() => reject(new Refused('timeout'))), withinMs)
    const stop = (settle: () => void): void => {
      clearTimeout(late)
      socket.pause()
      socket.off('data', read).off('close', ended).off('end', ended)
      settle()
    }
    const ended = (): void => stop(() => reject(new Refused('timeout', 'closed before the hello')))
    const read = (chunk: Buffer): void => {
      decoder.push(chunk)
      try {
        const message = decoder.next(HELLO_LIMITS)
        if (!message) return
        const hello = helloIn(message, decoder)
        stop(() => resolve(hello))
      } catch (err) {
        const refused = err instanceof Refused ? err : new Refused('malformed', (err as Error).message)
        stop(() => reject(refused))
      }
    }
    socket.on('data', read).on('close', ended).on('end', ended)
  })
}

function helloIn(
  { type, headers, body }: { readonly type: number; readonly headers: Headers; readonly body: Buffer },
  decoder: FrameDecoder,
): Hello {
  if (type !== contentType.hello) throw new Refused('malformed', `the first message is of type ${type}`)
  if (headers.has(headerKey.type)) throw new Refused('not-a-router')
  if (body.length === 0 || body.length > MAX_ID_BYTES) throw new Refused('malformed', 'no router id')
  return {
    routerId: body.toString(),
    versionInfo: versionInfoIn(headers.get(headerKey.version)?.toString() ?? ''),
    linkListeners: Buffer.from(headers.get(headerKey.listeners) ?? []),
    decoder,
  }
}
